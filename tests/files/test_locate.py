import tomllib

from hypothesis import given
from hypothesis import strategies as st

from poolwise.files.locate import line_of, lines

TEXT = '''\
version = 1
"quoted.key" = 'a # b'
text = """
[not.a.table]
fake = 1 ]
"""
array = [
  "a", # ]
  "b = c",
]
after = 2

[one]
x.y = 1

[[many]]
name = "first"
inline = { a = 1, b = 2 }
[[many]]
  name = "second"  # indented
  [many.inner]
  deep = true
'''


def test_every_key_has_its_line():
    tomllib.loads(TEXT)
    line = lines(TEXT)
    assert line["version",] == 1
    assert line["quoted.key",] == 2
    assert line["text",] == 3
    assert line["array",] == 7
    assert line["after",] == 11
    assert line["one",] == 13
    assert line["one", "x", "y"] == 14
    assert line["many", 0] == 16
    assert line["many", 0, "name"] == 17
    assert line["many", 1, "name"] == 20
    assert line["many", 1, "inner", "deep"] == 22
    assert ("fake",) not in line and ("not", "a", "table") not in line


def test_items_inside_a_value_have_the_line_of_its_key():
    line = lines(TEXT)
    assert line_of(line, ("many", 0, "inline", "b")) == 18
    assert line_of(line, ("array", 1)) == 7
    assert line_of(line, ("nowhere",)) is None


words = st.text("abcXYZ_-09", min_size=1, max_size=6)
values = st.one_of(
    st.integers(-5, 5).map(str),
    st.sampled_from(['"x"', "'y = [ # '", '"""\n[a]\nb = 1\n"""', "[\n1, # ]\n2\n]", "{ a = 1 }", '"a\\"]"', "'''\nq\n'''"]),
)


@given(
    st.lists(st.tuples(words, st.dictionaries(words, values, max_size=4)), max_size=6, unique_by=lambda e: e[0]), st.booleans()
)
def test_lines_match_generated_text(tables, arrays):
    text, expected = "", {}
    for name, content in tables:
        for k in range(2 if arrays else 1):
            text += f"# note\n[[{name}]]\n" if arrays else f"[{name}]\n"
            path = (name, k) if arrays else (name,)
            expected[path] = text.count("\n")
            for key, value in content.items():
                expected[*path, key] = text.count("\n") + 1
                text += f"{key} = {value} # = [\n"
    tomllib.loads(text)
    line_numbers = lines(text)
    for path, line in expected.items():
        assert line_numbers[path] == line
