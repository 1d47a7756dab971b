#!/bin/sh
# run_tests_of_file.sh PROGRAM FILE [flags of GoogleTest]: runs the tests of FILE among those of PROGRAM.
program=$1 file=$2
shift 2
exec "$program" "--tests_of=$file" "$@"
