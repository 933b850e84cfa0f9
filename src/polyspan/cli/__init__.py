"""The command `polyspan`: the only package that prints.

Each command is a module: `add` declares its arguments and names the function that runs it and
returns the exit code. 0: success; 1: something failed; 2: the request names something unknown.
Slow imports are made where they are used, so that `polyspan --help` stays quick.
"""
