# opensm.fdbs as ibdiagnet's .far: with -v choices=N the rows of the N lowest LIDs may take any of two ports; with -v bare=1 no comma
# follows a group's last port.
BEGIN {
    print "# ibdiagnet's, as test/fabrics/far.awk makes it"
    print "File version: 2"
}
/Switch 0x/ {
    split($0, part, "Switch ")
    printf "\nSwitch %s\nGroups Definition:\n%-8s%-12s%-8s%s\n-----------------------------\n", part[2], "Group", "Sub Group", "WHBF", "Ports"
    comma = bare ? "" : ","
    print "0       0           0       1,2" comma "\n1       0           0       3" comma
    printf "\nLFT Definition:\nPLFT_NUM: 0, top: 0x%x\n%-9s%-14s%-12s%s\n-----------------------------\n", 48, "LID", "Static Port", "Lid State", "Group"
    rows = 0
}
/^0x/ {
    split($0, part, " *: *")
    if (part[2] !~ /^[0-9]/) {
        next
    }
    # One that may choose among one port only is no choice.
    state = rows < choices ? "Free        0" : rows == 9 ? "Free        1" : "Static      0"
    printf "%-9s%-14d%s\n", part[1], part[2], state
    rows++
}
