# Removes names of the user interface, which docs/glossary.md lists as kept, from the lines that avoid.txt matches.
# the component of the chart
/^charts\//s/[Cc]ompanion//g
s/[[:alnum:]_.\/-]*companion[._\/-][[:alnum:]_.\/-]*//g
s/[[:alnum:]_.\/"-]*[._\/"-]companion[[:alnum:]_.\/"-]*//g
s/\*companion\*//g
s/- name: companion$//
# a key of the Secret of the CA
s/old\.confirmed//g
