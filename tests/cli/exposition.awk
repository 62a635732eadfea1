# Reads the text format of Prometheus, strictly: each metric has HELP, then TYPE, then its samples, all in
# one place and once; a counter ends with _total and nothing else does. Prints what is wrong; exit 1.

function wrong (text) { printf "line %d: %s: %s\n", NR, text, $0; bad = 1 }

# What is behind the name must be labels with escaped values, and a number.
function check_sample (rest,    label) {
    if (rest ~ /^\{/) {
        rest = substr (rest, 2)
        while (match (rest, /^[a-zA-Z_][a-zA-Z0-9_]*="([^"\\]|\\[\\"n])*"/)) {
            label = substr (rest, 1, index (rest, "=") - 1)
            if (label ~ /^__/ || (name, NR, label) in labels)
                wrong ("label " label)
            labels[name, NR, label] = 1
            rest = substr (rest, RLENGTH + 1)
            if (rest ~ /^,[a-z]/)
                rest = substr (rest, 2)
        }
        if (rest !~ /^\}/)
            wrong ("labels")
        rest = substr (rest, 2)
    }
    if (rest !~ /^ [0-9]+(\.[0-9]+)?$/)
        wrong ("value")
}

/^# HELP / {
    if (!match ($0, /^# HELP [a-zA-Z_:][a-zA-Z0-9_:]* /))
        wrong ("HELP")
    name = $3
    if (name in helped)
        wrong ("HELP twice")
    text = substr ($0, RLENGTH + 1)
    gsub (/\\\\|\\n/, "", text)
    if (text == "" || text ~ /\\/)
        wrong ("text of HELP")
    helped[name] = 1
    next
}
/^# TYPE / {
    if ($3 != name || $3 in type || NF != 4 || $4 !~ /^(counter|gauge|untyped)$/)
        wrong ("TYPE")
    if (($4 == "counter") != ($3 ~ /_total$/))
        wrong ("the name of a " $4)
    type[$3] = $4
    next
}
/^[a-zA-Z_:]/ {
    match ($0, /^[a-zA-Z_:][a-zA-Z0-9_:]*/)
    at = substr ($0, 1, RLENGTH)
    if (at != name || !(at in type))
        wrong ("a sample elsewhere than behind its TYPE")
    key = $0
    sub (/ [^ ]*$/, "", key)
    if (key in seen)
        wrong ("a sample twice")
    seen[key] = 1
    samples++
    check_sample (substr ($0, RLENGTH + 1))
    next
}
{ wrong ("no line of this format") }
END {
    if (samples == 0) {
        print "no samples"
        bad = 1
    }
    exit bad
}
