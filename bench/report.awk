# SPDX-License-Identifier: MIT
# report.awk - from measured values to the table and results.json.
#   awk -v json=FILE -f report.awk VALUES ROWS
# VALUES: "key value label"; what was measured in the same round has the same label. ROWS: name|unit|
# key|peer|peer key|lower or higher is better|goal as a ratio, or as a value where there is no peer.
#
# The medians of the values are shown. The ratio is the median of the rounds' ratios, each of two
# values measured close to each other; of the medians if no round has both.

function median_of(a, n,    i, j, t) {
    for (i = 2; i <= n; i++)
        for (j = i; j > 1 && a[j] < a[j - 1]; j--) { t = a[j]; a[j] = a[j - 1]; a[j - 1] = t }
    return n % 2 ? a[(n + 1) / 2] : (a[n / 2] + a[n / 2 + 1]) / 2
}

function median(key,    n, i, a) {
    n = count[key]
    for (i = 1; i <= n; i++) a[i] = value[key, label[key, i]]
    return n == 0 ? "" : median_of(a, n)
}

function median_ratio(ours, theirs,    n, i, a, l) {
    n = 0
    for (i = 1; i <= count[ours]; i++) {
        l = label[ours, i]
        if ((theirs, l) in value && value[theirs, l] > 0) a[++n] = value[ours, l] / value[theirs, l]
    }
    if (n != 0) return median_of(a, n)
    return count[ours] && count[theirs] && median(theirs) > 0 ? median(ours) / median(theirs) : ""
}

function number_or_null(v) { return v == "" ? "null" : sprintf("%.6g", v) }
function text_or_null(v) { return v == "" ? "null" : "\"" v "\"" }
function shown(v) { return v == "" ? "-" : sprintf("%.4g", v) }

NR == FNR {
    if (!(($1, $3) in value)) label[$1, ++count[$1]] = $3
    value[$1, $3] = $2 + 0
    next
}
FNR == 1 {
    print "[" >json
    printf "%-38s %-5s %10s  %-28s %10s %7s  %s\n", "what", "unit", "softnd", "beside", "", "ratio", "goal"
}
{
    split($0, f, "|")
    ours = median(f[3])
    theirs = f[5] == "" ? "" : median(f[5])
    ratio = f[5] == "" ? "" : median_ratio(f[3], f[5])
    figure = (f[4] == "" ? ours : ratio)
    met = "null"
    verdict = ""
    if (f[7] != "") {
        is_met = figure != "" && (f[6] == "lower" ? figure <= f[7] + 0 : figure >= f[7] + 0)
        met = (is_met ? "true" : "false")
        verdict = sprintf("%s %g %s: %s", (f[6] == "lower" ? "at most" : "at least"), f[7],
            (f[4] == "" ? f[2] : "x"), (figure == "" ? "not measured" : is_met ? "met" : "NOT met"))
    }
    printf "%-38s %-5s %10s  %-28s %10s %7s  %s\n", f[1], f[2], shown(ours), f[4], shown(theirs), shown(ratio), verdict
    line = sprintf("  {\"name\": \"%s\", \"unit\": \"%s\", \"softnd\": %s, \"peer\": %s, ", f[1], f[2],
        number_or_null(ours), text_or_null(f[4]))
    line = line sprintf("\"peer_value\": %s, \"ratio\": %s, \"goal\": %s, \"met\": %s}", number_or_null(theirs),
        number_or_null(ratio), number_or_null(f[7]), met)
    printf "%s%s", (FNR == 1 ? "" : ",\n"), line >json
}
END { print "\n]" >json }
