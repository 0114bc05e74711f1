"""Reading one file as Hadoop does. Verdicts were taken from `Configuration` 3.4.2 on the same inputs."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gandiva_core.model.errors import InputError
from gandiva_core.site.hadoop_xml import read_file

XI = 'xmlns:xi="http://www.w3.org/2001/XInclude"'


def read(folder: Path, body: str, name: str = "yarn-site.xml") -> list[tuple[str, str | None]]:
    path = folder / name
    path.write_text(f"<configuration {XI}>\n{body}\n</configuration>")
    return [(item.name, item.value) for item in read_file(path)]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("<property><name> a\n </name><value> v </value></property>", [("a", " v ")]),
        ("<property><name>a</name><value></value></property>", [("a", None)]),
        ("<property><name>a</name><value/></property>", [("a", None)]),
        ("<property><name>a</name><name>1536</name></property>", [("1536", None)]),
        ("<property><value>v</value></property>", []),
        ("<property><name>a</name><value>1</value><value>2</value></property>", [("a", "2")]),
        ('<property name="a" value="v"/>', [("a", "v")]),
        ("<property><name>a</name><value>x<!-- c -->y</value></property>", [("a", "xy")]),
        ("<property><name>a</name><value><![CDATA[<x>]]></value></property>", [("a", "<x>")]),
        ("<property><name>a</name><value>p<name>b</name></value></property>", [("b", "b")]),
    ],
)
def test_a_property_is_read_as_hadoop_reads_it(
    tmp_path: Path, body: str, expected: list[tuple[str, str | None]]
) -> None:
    assert read(tmp_path, body) == expected


@pytest.mark.parametrize(("text", "is_final"), [("true", True), (" true ", False), ("TRUE", False)])
def test_final_must_be_exactly_true(tmp_path: Path, text: str, is_final: bool) -> None:
    path = tmp_path / "a.xml"
    path.write_text(
        f"<configuration><property><name>a</name><value>1</value><final>{text}</final></property></configuration>"
    )
    (only,) = read_file(path)
    assert only.is_final is is_final


def test_each_property_knows_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    path.write_text(
        '<?xml version="1.0"?>\n<configuration>\n  <property>\n<name>a</name><value>1</value></property>\n'
        "<property><name>b</name><value>1</value></property></configuration>"
    )
    assert [item.line for item in read_file(path)] == [3, 5]


def test_an_include_is_read_where_it_stands(tmp_path: Path) -> None:
    """H20: relative to the file that includes; what follows it comes later and so wins."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "gpu.xml").write_text(
        "<configuration><property><name>a</name><value>in</value></property></configuration>"
    )
    body = (
        "<property><name>a</name><value>before</value></property>"
        '<xi:include href="sub/gpu.xml"/><property><name>a</name><value>after</value></property>'
    )
    assert [value for _, value in read(tmp_path, body)] == ["before", "in", "after"]


def test_an_include_inside_an_include_is_relative_to_its_own_file(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "one.xml").write_text(
        f'<configuration {XI}><xi:include href="two.xml"/></configuration>'
    )
    (tmp_path / "sub" / "two.xml").write_text(
        "<configuration><property><name>deep</name><value>1</value></property></configuration>"
    )
    assert read(tmp_path, '<xi:include href="sub/one.xml"/>') == [("deep", "1")]


def test_the_fallback_counts_only_when_the_file_is_not_there(tmp_path: Path) -> None:
    """H20 b."""
    fallback = "<xi:fallback><property><name>f</name><value>1</value></property></xi:fallback>"
    absent = f'<xi:include href="absent.xml">{fallback}</xi:include>'
    assert read(tmp_path, absent) == [("f", "1")]
    (tmp_path / "absent.xml").write_text("<configuration/>")
    assert read(tmp_path, absent) == []


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('<xi:include href="absent.xml"/>', "or an xi:fallback"),
        ('<xi:include href="http://example.com/a.xml"/>', "local file"),
        ('<xi:include href="yarn-site.xml"/>', "without a circle"),
        ("<property>", "broken XML"),
    ],
)
def test_what_cannot_be_read_is_one_line_with_file_and_line(
    tmp_path: Path, body: str, words: str
) -> None:
    with pytest.raises(InputError, match=words) as caught:
        read(tmp_path, body)
    assert "yarn-site.xml:" in caught.value.place
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", "an empty file"),
        (b"../conf.simple/capacity-scheduler.xml", "a path (a symbolic link stored as text?)"),
        (b"key: value\n", "'key: value'"),
        (b"PK\x03\x04\x00\x00\xff\xfe", "binary data"),
        (b'<!DOCTYPE c [<!ENTITY e "x">]><configuration>&e;</configuration>', "an XML entity"),
    ],
)
def test_a_file_that_is_not_a_configuration_is_named_with_what_it_holds(
    tmp_path: Path, content: bytes, found: str
) -> None:
    """H17: a symbolic link checked out as text."""
    path = tmp_path / "capacity-scheduler.xml"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        list(read_file(path))
    assert found in caught.value.found
    assert caught.value.place == f"{path}:1"


def test_a_file_that_is_not_there_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        list(read_file(tmp_path / "absent.xml"))
    with pytest.raises(InputError, match="directory"):
        list(read_file(tmp_path))


def test_an_undeclared_prefix_is_an_error_as_in_hadoop(tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    path.write_text('<configuration><xi:include href="b.xml"/></configuration>')
    with pytest.raises(InputError, match="prefix"):
        list(read_file(path))


@given(content=st.binary(max_size=200))
def test_any_bytes_give_properties_or_one_clear_error(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = tmp_path_factory.mktemp("any") / "site.xml"
    path.write_bytes(content)
    try:
        assert list(read_file(path)) == []
    except InputError as problem:
        told = str(problem)
    else:
        told = ""
    assert "\n" not in told
