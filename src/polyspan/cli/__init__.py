"""The command `polyspan`: the only room that prints."""
