"""Encodings of files (P3): marks, declarations, and what bytes look like."""

from __future__ import annotations

import asyncio
import codecs
import subprocess
import sys
from pathlib import Path

import pytest
from pages import resolve, serving, text

from agentkernel_kb.rag import AutoLoader, Fetcher

SAMPLES = {
    "cp1252": "Café crème à la française, garçon naïf.", "cp1250": "Příliš žluťoučký kůň úpěl ďábelské ódy.",
    "cp1251": "Привет, мир. Это обычный русский текст для проверки.",
    "koi8-r": "Привет, мир. Это обычный русский текст для проверки.",
    "cp1253": "Αυτό είναι ένα ελληνικό κείμενο για δοκιμή.", "cp932": "名前,年齢\r\n佐藤太郎,30\r\n髙橋淳,35\r\n",
    "euc_jp": "日本語のテキストです。これは試験です。", "iso2022_jp": "日本語のテキストです。これは試験です。",
    "gb18030": "这是一个中文文本，用于测试编码检测。",
    "big5": "這是一個中文文本，用於測試編碼檢測。",
    "cp949": "이것은 인코딩 감지를 위한 한국어 텍스트입니다.",
    "utf-16": "naïve 日本", "utf-32": "naïve 日本", "utf-8-sig": "naïve 日本", "utf-8": "naïve 日本",
    "utf-16-le": "Mostly Latin, naïvely written.", "utf-16-be": "Mostly Latin, naïvely written.",
}  # fmt: skip


def read(tmp_path: Path, content: bytes, name: str = "file.txt") -> str:
    path = tmp_path / name
    path.write_bytes(content)
    return asyncio.run(AutoLoader().load(path))[0].text


@pytest.mark.parametrize("encoding", SAMPLES)
def test_the_encoding_of_a_file_is_detected(tmp_path: Path, encoding: str) -> None:
    assert read(tmp_path, SAMPLES[encoding].encode(encoding)) == SAMPLES[encoding]


@pytest.mark.parametrize(
    "word", ["Größe und Übermaß für Straßen", "Å på är en ö i älven, säger räven över åsen.", "It’s “5 €” – a café"]
)
def test_western_text_is_not_taken_for_that_of_a_neighbour(tmp_path: Path, word: str) -> None:
    assert read(tmp_path, word.encode("cp1252")) == word


def test_a_long_file_that_is_ascii_at_first_is_detected_by_the_lines_that_tell(tmp_path: Path) -> None:
    long = "plain line of a log\n" * 20_000 + "Größe und Übermaß für Straßen\n"

    assert read(tmp_path, long.encode("latin-1")) == long


def test_a_declared_encoding_counts_before_a_guess(tmp_path: Path) -> None:
    page = '<meta charset="iso-8859-7"><p>Ώρα</p>'

    assert read(tmp_path, page.encode("iso-8859-7"), "a.html") == "Ώρα"
    assert read(tmp_path, '<?xml version="1.0" encoding="koi8-r"?><a>Да</a>'.encode("koi8-r"), "a.xml") == "a: Да"
    assert read(tmp_path, "# -*- coding: cp1251 -*-\n# Да\n".encode("cp1251"), "a.py").endswith("# Да\n")


def test_utf_8_is_utf_8_whatever_is_declared(tmp_path: Path) -> None:
    assert read(tmp_path, '<meta charset="latin-1"><p>Ώρα</p>'.encode(), "a.html") == "Ώρα"


def test_the_encoding_that_a_server_says_counts_where_the_page_is_not_utf_8() -> None:
    with serving({"/": text("Ώρα".encode("iso-8859-7"), "text/plain; charset=ISO-8859-7")}) as site:
        loader = AutoLoader(fetcher=Fetcher(resolver=resolve, allow_hosts=["site.example"]))
        assert asyncio.run(loader.load(site.url()))[0].text == "Ώρα"


@pytest.mark.parametrize(
    "charset", ["hex", "zlib", "idna", "punycode", "undefined", "utf-7", "unicode_escape", "no-such", "rot13"]
)
def test_a_server_cannot_choose_a_codec_that_is_no_encoding(charset: str) -> None:
    with serving({"/": text(b"caf\xe9 \\u0041 +AGE-", f"text/plain; charset={charset}")}) as site:
        loader = AutoLoader(fetcher=Fetcher(resolver=resolve, allow_hosts=["site.example"]))
        (found,) = asyncio.run(loader.load(site.url()))
    assert found.text == "café \\u0041 +AGE-"


@pytest.mark.parametrize("mark", [codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_LE])
def test_a_mark_alone_is_an_empty_text(tmp_path: Path, mark: bytes) -> None:
    assert read(tmp_path, mark) == ""


def test_what_fits_no_encoding_is_utf_8_with_replacements(tmp_path: Path) -> None:
    assert "\ufffd" in read(tmp_path, bytes(range(1, 256)) * 50)


def test_without_the_library_that_tells_it_is_utf_8_with_replacements(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("Größe".encode("latin-1"))
    program = (
        "import asyncio, sys; sys.modules['charset_normalizer'] = None; from agentkernel_kb.rag import AutoLoader;"
        "print(ascii(asyncio.run(AutoLoader().load(sys.argv[1]))[0].text))"
    )
    finished = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True,
        env={"PYTHONPATH": ":".join(each for each in sys.path if each)},
    )  # fmt: skip

    assert finished.stdout.strip() == ascii("Gr\ufffd\ufffde")
