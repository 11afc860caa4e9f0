#!/bin/sh
# Checks the subjects of the commits in a range: `tools/commit_subjects.sh origin/main..HEAD`.
# A subject is `area: what`, where `what` begins with an imperative, and has at most 72 characters.
set -eu
git log --no-merges --format='%h %s' "$1" | awk '
	function bad(why) { print $1 ": " why ": " subject; failed = 1 }
	{
		subject = substr($0, length($1) + 2)
		if (length(subject) > 72) bad("more than 72 characters")
		if (subject !~ /^[a-z0-9][a-z0-9_.\/, -]*: [^ ]/) { bad("not `area: what`"); next }
		if (subject ~ /\.$/) bad("ends with a full stop")
		what = subject
		sub(/^[^:]*: /, "", what)
		split(what, words, /[ ,;:]/)
		word = words[1]
		if (word !~ /^[a-z]/) next
		if (word ~ /ed$/ && word !~ /^(embed|exceed|feed|need|proceed|seed|shed|speed|succeed)$/ ||
			word ~ /ing$/ && word !~ /^(bring|ping|ring|string)$/ ||
			word ~ /s$/ && word !~ /(ss|us|as)$/) bad("`" word "` is not an imperative")
	}
	END { exit failed }'
