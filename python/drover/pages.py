"""Pages of docs/ that scripts write a part of."""


def put_between_marks(path, script, text):
    """Puts `text` between the lines <!-- SCRIPT --> and <!-- end --> of a page, in place of what stands there; a page without them ends
    the run."""
    with open(path) as file:
        page = file.read()
    first, last = f"<!-- {script} -->\n", "<!-- end -->"
    begin = page.find(first) + len(first)
    end = page.find(last, begin)
    if begin < len(first) or end < 0:
        raise SystemExit(f"{path}: expected the lines '{first.strip()}' and '{last}'")
    with open(path, "w") as file:
        file.write(page[:begin] + text.rstrip("\n") + "\n" + page[end:])
