# Where the latencies lie: gnuplot -c bench/plot_tails.gp build/bench-tails.dat docs/tails.png
#
# A panel for each row; to the right the shares of a hundred, a thousand, of which the slowest is
# told; upwards the time, by powers of ten. A flat line is a short tail.

input = ARG1
output = ARG2

set terminal pngcairo size 1500,480 noenhanced font "sans,11" background "white"
set output output
set datafile separator tab

array case[3] = ["to_worker", "notified", "life_pipelined"]
array says[3] = ["idle: from submit to the worker", "idle: from submit to the known result", \
    "lives, many outstanding"]
# Colours of Okabe and Ito, which colour-blind people tell apart.
array system[6] = ["taskmq", "ceiling", "redis", "redis-work", "beanstalkd", "postgresql"]
array called[6] = ["taskmq", "bare ceiling", "Redis, stream only", "Redis, same work", \
    "beanstalkd", "PostgreSQL"]
array colour[6] = ["#D55E00", "#999999", "#56B4E9", "#0072B2", "#009E73", "#CC79A7"]

# A system that was not measured is one point outside the picture.
points(row, name) = "< awk -F '\t' '$1 == \"" . row . "\" && $2 == \"" . name \
    . "\" {print; n++} END {if (!n) print \"-\\t-\\t0.99999\\t1000\"}' '" . input . "'"
found(row, name) = system("awk -F '\t' '$1 == \"" . row . "\" && $2 == \"" . name \
    . "\" {n++} END {print n + 0}' '" . input . "'") + 0
place(share) = -log10(1 - share)

set border 3 lc rgb "#606060"
set grid x y lc rgb "#dddddd"
set logscale y
set format y "%.0s %c"
set ytics nomirror
set xtics nomirror ("50 %%" place(0.5), "90 %%" place(0.9), \
    "99 %%" place(0.99), "99.9 %%" place(0.999))
set xrange [0:3.1]
set key top left reverse Left samplen 2 font ",10"

set multiplot layout 1,3 margins 0.045,0.985,0.1,0.88 spacing 0.05,0
do for [i = 1:3] {
    set title case[i] . ": " . says[i] . ", µs" font ",10.5"
    plot for [k = 1:6] points(case[i], system[k]) \
        using (place($3)):4 with linespoints lw (k == 1 ? 3 : 1.5) pt 7 ps 0.6 \
        lc rgb colour[k] title (found(case[i], system[k]) ? called[k] : "")
    unset key
}
unset multiplot
