# plot.awk: the measured ratios as bars on a logarithmic scale, as SVG. Reads the lines that bench/run keeps of
# its rows: id, text, unit, measured, "<=" or ">=", wanted, remark, separated by tabs. Rows with a unit are no
# ratios and are left out. A line across a bar is what was wanted.

function x_of(v) { return left + width * (log(v) / log(10) - low) / (high - low) }
function escaped(s) {
	gsub(/&/, "\\&amp;", s)
	gsub(/</, "\\&lt;", s)
	gsub(/>/, "\\&gt;", s)
	return s
}
function text(x, y, anchor, s, style) {
	printf "<text x=\"%.0f\" y=\"%.0f\" text-anchor=\"%s\"%s>%s</text>\n", x, y, anchor, style, escaped(s)
}
function rule(x, y1, y2, colour, style) {
	printf "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.0f\" y2=\"%.0f\" stroke=\"%s\"%s/>\n", x, x, y1, y2, colour, style
}

BEGIN { FS = "\t"; left = 420; width = 420; top = 70; step = 34; bar = 18 }

$3 == "" {
	n++
	label[n] = $2
	value[n] = $4
	op[n] = $5
	wanted[n] = $6
	least = (n == 1 || $4 < least) ? $4 : least
	least = $6 < least ? $6 : least
	most = $4 > most ? $4 : most
	most = $6 > most ? $6 : most
}

END {
	if (n == 0)
		exit 1
	low = int(log(least) / log(10) - 1)
	high = int(log(most) / log(10) + 1)
	height = top + n * step + 50
	printf "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"960\" height=\"%d\" viewBox=\"0 0 960 %d\"", height, height
	print " font-family=\"sans-serif\" font-size=\"14\" fill=\"#222222\">"
	printf "<rect width=\"960\" height=\"%d\" fill=\"#ffffff\"/>\n", height
	text(20, 28, "start", "Ratios, logarithmic scale", " font-size=\"18\"")
	text(20, 50, "start", "bar: measured; line: wanted; blue: reached; orange: not reached", " fill=\"#555555\"")
	bottom = top + n * step
	for (e = low; e <= high; e++) {
		rule(x_of(10 ^ e), top - 4, bottom, "#dddddd", "")
		text(x_of(10 ^ e), bottom + 20, "middle", 10 ^ e "", "")
	}
	for (i = 1; i <= n; i++) {
		y = top + (i - 1) * step + (step - bar) / 2
		ok = op[i] == "<=" ? value[i] <= wanted[i] : value[i] >= wanted[i]
		a = x_of(value[i] < 1 ? value[i] : 1)
		b = x_of(value[i] < 1 ? 1 : value[i])
		text(left - 20, y + 14, "end", label[i], "")
		printf "<rect x=\"%.1f\" y=\"%.0f\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>\n", a, y, (b - a > 1 ? b - a : 1), bar, \
			ok ? "#3b78b8" : "#d9822b"
		rule(x_of(wanted[i]), y - 4, y + bar + 4, "#222222", " stroke-width=\"2\"")
		end = b > x_of(wanted[i]) ? b : x_of(wanted[i])
		text(end + 8, y + 14, "start", sprintf("%.3g (%s %s)", value[i], op[i], wanted[i]), "")
	}
	rule(x_of(1), top - 4, bottom, "#888888", "")
	print "</svg>"
}
