"""The commands of `python -m lengthwise`: each module has add_arguments(parser) and run(arguments, output)."""
