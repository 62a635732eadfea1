# How flat it stays: gnuplot -c bench/plot_growth.gp build/bench-growth.dat docs/growth.png
#
# A panel for each growth row that is in the file; what is flat is good. Only the last one grows by
# itself: each of its subscribers sees all of 1,000 events a second.

input = ARG1
output = ARG2

set terminal pngcairo size 1500,430 font "sans,11" background "white"
set output output
set datafile missing "?"

array case[4] = ["scale_live", "scale_terminal", "connections", "subscribers"]
array grows[4] = ["queued tasks", "finished tasks", "idle connections", "subscribers"]
block(name) = "< awk '/^\"/ {on = $0 == \"\\\"" . name . "\\\"\"} on && /^[0-9]/' '" . input . "'"
found(name) = system("grep -c '^\"" . name . "\"' '" . input . "' || :") + 0

set border 11 lc rgb "#606060"
set grid y lc rgb "#dddddd"
set logscale x
set xtics nomirror format "10^{%T}"
set ytics nomirror textcolor rgb "#0072B2" format "%.0s %c"
set y2tics textcolor rgb "#D55E00" format "%.0f"
set yrange [0:*]
set y2range [0:*]
unset key

set multiplot layout 1,4 margins 0.045,0.955,0.14,0.85 spacing 0.065,0
do for [i = 1:4] {
    if (found(case[i]) > 0) {
        set title i < 4 ? "lives per second (solid) and idle latency\np50, µs (dashed)" \
            : "events delivered per second (solid) and\ntheir delay p50, µs (dashed)" font ",10"
        set xlabel grows[i]
        plot block(case[i]) using 1:2 axes x1y1 with linespoints lw 2 pt 7 lc rgb "#0072B2", \
            block(case[i]) using 1:3 axes x1y2 with linespoints lw 2 dt 2 pt 4 lc rgb "#D55E00"
    } else {
        set multiplot next
    }
}
unset multiplot
