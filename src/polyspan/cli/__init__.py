"""The command `polyspan`: the only room that prints.

Each command is a module: `add` declares its arguments, the function that it names runs it and
returns the exit code. 0: well; 1: something failed; 2: asked for something that does not exist.
Whatever is slow to load is imported where it is used: `polyspan --help` stays quick.
"""
