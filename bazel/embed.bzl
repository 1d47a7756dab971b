"""Files as C++ strings: SQL, shell, YAML and Python stay files of their own."""

def embedded_texts(name, header, namespace, texts):
    """Writes NAME.cc, which defines what a header declares.

    Args:
      name: of the source.
      header: the header's path.
      namespace: of the variables.
      texts: by variable: a file, as `extern const char VARIABLE[]`, or a list of files, as `extern const char* const VARIABLE[]`.
    """
    literal = "printf '%%s' 'R\"text('; cat $(location %s); printf '%%s' ')text\"'; "
    srcs = []
    commands = "printf '%%s\\n' '#include \"%s\"' 'namespace %s {'; " % (header, namespace)
    for variable, files in texts.items():
        if type(files) == "string":
            srcs.append(files)
            commands += "echo 'const char %s[] ='; " % variable + literal % files + "echo ';'; "
        else:
            srcs += files
            commands += "echo 'const char* const %s[] = {'; " % variable
            commands += "".join([literal % file + "echo ','; " for file in files]) + "echo '};'; "
    native.genrule(
        name = name + "_text",
        srcs = srcs,
        outs = [name + ".cc"],
        cmd = "{ " + commands + "echo '}'; } > $@",
    )
