#!/bin/sh
# Fails if src, tests, docs, the chart, README or CONTRIBUTING use a former term, and prints the lines.
# avoid.txt has one extended regular expression per line, which must match whole words.
set -eu
cd "$(dirname "$0")/../.."
found=$(git grep -nIwE -f tools/glossary/avoid.txt -- src tests docs charts README.md CONTRIBUTING.md \
	':(exclude)tests/recordings' ':(exclude)tests/vectors' ':(exclude)docs/glossary.md' |
	sed -E -f tools/glossary/kept.sed | grep -wE -f tools/glossary/avoid.txt || true)
if [ -n "$found" ]; then
	echo "$found"
	echo "These lines use former terms. docs/glossary.md defines the current ones."
	exit 1
fi
