# The picture of the README: gnuplot -c bench/plot.gp build/bench.dat docs/performance.png
#
# Lives per second on the disk as it is, and what they cost the server; the same order in all three
# panels. Colours of Okabe and Ito, which colour-blind people tell apart; what is not durable is
# hatched as well.

input = ARG1
output = ARG2

set terminal pngcairo size 1500,600 font "sans,11" background "white"
set output output

# system, class, piped, 8+8, CPU of a piped life; the best last, because the axis goes up.
# What was not measured is 0. Classes: 0 taskmq, 1 durable, 2 not durable, 3 the ceiling.
names = "taskmq=taskmq;ceiling=bare ceiling;ceiling-log=ceiling, plain log;redis=Redis, stream only;" \
    . "redis-work=Redis, same work;" \
    . "postgresql=PostgreSQL, batches;nats=NATS JetStream;rabbitmq=RabbitMQ quorum;" \
    . "rabbitmq-classic=RabbitMQ classic"
rows = "< awk -F '\t' -v OFS='\t' -v names='" . names . "' 'BEGIN {" \
    . " split(names, pairs, \";\"); for (i in pairs) {split(pairs[i], pair, \"=\");" \
    . " called[pair[1]] = pair[2]}} $4 == 0 && $2 != \"taskmq-normal\" {" \
    . " if ($1 == \"life_pipelined\") {p[$2] = $5; c[$2] = $8 + 0;" \
    . " k[$2] = $2 == \"taskmq\" ? 0 : $2 ~ /^ceiling/ ? 3 : $3 == \"fsync\" ? 1 : 2}" \
    . " if ($1 == \"life_sync\") s[$2] = $5}" \
    . " END {for (n in p) print (n in called ? called[n] : n), k[n], p[n], n in s ? s[n] : 0," \
    . " c[n]}' '" . input . "' | sort -t '\t' -g -k 3"
set datafile separator tab

array fill[4] = ["#D55E00", "#0072B2", "#56B4E9", "#999999"]
array pattern[4] = [3, 3, 4, 3]
array meaning[4] = ["taskmq (durable)", "durable: fsync before every answer", "not durable", \
    "bare ceilings: only ROUTER, SQLite or a log, group commit"]

array top[5]
do for [panel = 3:5] {
    stats rows using panel nooutput
    top[panel] = STATS_max
}
count = STATS_records

short(x) = x >= 9999.5 ? sprintf("%.0f k", x / 1000) : x >= 999.5 ? sprintf("%.1f k", x / 1000) \
    : sprintf("%.0f", x)
micro(x) = x == 0 ? "" : x >= 99.5 ? sprintf("%.0f", x) : sprintf("%.1f", x)

set style fill pattern border
set border 3 lc rgb "#606060"
set grid x lc rgb "#dddddd"
set xtics nomirror format "%.0s %c"
set yrange [-0.6:count - 0.4]
unset key

set multiplot layout 1,3 margins 0.115,0.985,0.14,0.88 spacing 0.03,0

unset ytics

do for [panel = 3:5] {
    set xrange [0:top[panel] * 1.15]
    set title (panel == 3 \
        ? "Lives per second, many outstanding\n(2 producers × 1,000, 4 workers × 100)" \
        : panel == 4 ? "Lives per second, one outstanding\n(8 producers, 8 workers)" \
        : "Server CPU per life of the first panel, µs\n(less is better)") font ",10.5"
    if (panel == 5) { set xtics format "%.0f" }
    plot for [class = 0:3] rows \
            using ($2 == class ? column(panel) / 2 : NaN):0:(0):(column(panel)) \
            :($0 - 0.36):($0 + 0.36) with boxxyerror \
            fs pattern pattern[class + 1] lc rgb fill[class + 1], \
        rows using (column(panel)):0:(panel == 5 ? micro($5) : short(column(panel))) \
            with labels left offset 0.5,0 font ",10", \
        rows using (panel == 3 ? 0 : NaN):0:1 with labels right offset -0.8,0
}

# The legend below all panels.
unset title
set margins 0,0,0,0
unset border
unset xtics
unset ytics
unset grid
set origin 0,0
set size 1,0.09
set xrange [0:1]
set yrange [0:1]
set key at screen 0.55,0.045 center center horizontal maxrows 1 samplen 2 width -2 font ",10.5"
plot for [class = 0:3] NaN with boxes fs pattern pattern[class + 1] lc rgb fill[class + 1] \
    title meaning[class + 1]
unset multiplot
