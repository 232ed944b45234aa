"""Keyword search in many languages and scripts (P5): accents, inflections, identifiers, right to left, without spaces."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentkernel_kb.errors import AKConfigError
from agentkernel_kb.rag import Document, Knowledge, create_knowledge

TEXTS = {
    "fr": "Les étudiants ont réservé une salle près de l'hôtel à Besançon.",
    "es": "Los niños comían piñas en la montaña.",
    "pt": "As crianças não querem as maçãs do avô.",
    "ru": "Возврат денежных средств производится в течение тридцати дней.",
    "el": "Η επιστροφή χρημάτων γίνεται σε τριάντα ημέρες.",
    "ja": "返金は三十日以内に行われます。コンピューターのキーボードを交換。",
    "zh": "退款在三十天内处理。火车早上出发。",
    "ko": "환불은 삼십일 이내에 처리됩니다. 기차는 아침에 출발합니다.",
    "th": "การคืนเงินจะดำเนินการภายในสามสิบวัน รถไฟออกตอนเช้า",
    "he": "מדיניות ההחזרים: החזר כספי תוך שלושים יום.",
    "ar": "سياسة الاسترداد: يتم رد المبلغ خلال ثلاثين يومًا بواسطة المكتبة.",
    "hi": "धनवापसी तीस दिनों के भीतर की जाती है।",
    "bn": "তিরিশ দিনের মধ্যে টাকা ফেরত দেওয়া হয়।",
    "ta": "பணம் முப்பது நாட்களுக்குள் திரும்ப வழங்கப்படும்.",
    "vi": "Việc hoàn tiền được xử lý trong ba mươi ngày.",
    "hy": "Հայաստանը վերադարձնում է գումարը.",
    "ka": "საქართველო აბრუნებს თანხას.",
    "am": "ተመላሽ ገንዘብ በሠላሳ ቀናት ውስጥ ይከፈላል።",
    "code": "class HttpRequestParser: def parse_http_header(self, raw_bytes): return self.maxRetryCount",
    "names": "C++ and C# and .NET and node.js run on x86_64, v2.10.3, with IPv6 and ERR-4042.",
    "wide": "Ｆｕｌｌｗｉｄｔｈ ＡＢＣ１２３ ｔｅｘｔ",
    "marks": "The cafe\u0301 serves nai\u0308ve cre\u0300me bru\u0302le\u0301e.",
    "en": "Runners were running; analyses of geese.",
    "pl": "Zażółć gęślą jaźń; łódź płynie przez miasto.",
    "da": "Smørrebrød og øl på Bornholm.",
    "tr": "İstanbul'da ışıklar söndü, ıspanak yendi.",
    "mixed": "The word ארוחה stands in an English line, beside обед and 昼食.",
}
QUERIES = [
    ("etudiant", "fr"), ("hotel", "fr"), ("HÔTEL", "fr"), ("Besancon", "fr"), ("nino", "es"), ("pina", "es"),
    ("maca", "pt"), ("criança", "pt"), ("avo", "pt"), ("возвраты", "ru"), ("ВОЗВРАТ", "ru"),
    ("денежное средство", "ru"), ("επιστροφη", "el"), ("χρήματα", "el"), ("ΗΜΕΡΕΣ", "el"), ("返金", "ja"),
    ("キーボード", "ja"), ("ｷｰﾎﾞｰﾄﾞ", "ja"), ("退款", "zh"), ("早上", "zh"), ("환불", "ko"), ("출발", "ko"),
    ("คืนเงิน", "th"), ("รถไฟ", "th"), ("החזר", "he"), ("כספי", "he"), ("استرداد", "ar"), ("مكتبة", "ar"),
    ("يوما", "ar"), ("धनवापसी", "hi"), ("টাকা ফেরত", "bn"), ("பணம்", "ta"), ("hoan tien", "vi"), ("ngày", "vi"),
    ("գումարը", "hy"), ("თანხას", "ka"), ("ገንዘብ", "am"), ("http header", "code"), ("request parser", "code"),
    ("HttpRequestParser", "code"), ("max retry count", "code"), ("maxRetryCount", "code"), ("raw bytes", "code"),
    ("C++", "names"), ("C#", "names"), ("node.js", "names"), ("x86_64", "names"), ("v2.10.3", "names"),
    ("ipv6", "names"), ("ERR-4042", "names"), ("fullwidth", "wide"), ("abc123", "wide"), ("café", "marks"),
    ("naive", "marks"), ("creme brulee", "marks"), ("run", "en"), ("runner", "en"), ("analysis", "en"),
    ("ארוחה", "mixed"), ("обеды", "mixed"), ("昼食", "mixed"), ("zazolc", "pl"), ("LODZ", "pl"), ("smorrebrod", "da"),
    ("øl", "da"), ("istanbul", "tr"), ("ISPANAK", "tr"), ("isiklar", "tr"),
]  # fmt: skip


@pytest.fixture(scope="module", params=["memory", "sqlite"])
def corpus(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Knowledge:
    where: dict[str, Any] = {"path": tmp_path_factory.mktemp("languages") / "kb.db"} if request.param == "sqlite" else {}
    return create_knowledge(
        request.param, mode="keyword", sources=[Document(text, name) for name, text in TEXTS.items()], **where
    )


@pytest.mark.parametrize(("query", "source"), QUERIES, ids=ascii)
def test_p5_a_word_is_found_in_whatever_form_it_is_asked_for(corpus: Knowledge, query: str, source: str):
    assert [hit.source for hit in corpus.sync.search(query, k=1)] == [source]


@pytest.mark.parametrize("query", ["टाका", "неизвестно", "存在しない", "zzzzzz", "؟!", "—"], ids=ascii)
def test_p5_a_word_that_is_nowhere_is_not_found(corpus: Knowledge, query: str):
    assert corpus.sync.search(query) == []


@pytest.mark.parametrize(
    ("language", "text", "queries"),
    [
        ("german", "Der Müller fährt mit seinen Büchern über die Brücken.", ["Buch", "Brücke", "BÜCHER", "fahren", "muller"]),
        ("danish", "Færgen sejler.", ["færge", "sejle"]),
        ("turkish", "Işıklar söndü.", ["ışık", "isik"]),
    ],
    ids=["german", "danish", "turkish"],
)
def test_p5_the_language_of_a_corpus_says_which_inflections_are_known(
    tmp_path: Path, language: str, text: str, queries: list[str]
):
    knowledge = create_knowledge("sqlite", path=tmp_path / "kb.db", language=language, mode="keyword", sources=[text])
    assert [query for query in queries if not knowledge.sync.search(query)] == []


def test_p5_a_language_that_nobody_knows_is_refused_with_those_that_are_known():
    with pytest.raises(AKConfigError, match="Did you mean 'german'"):
        create_knowledge("memory", language="germn")


async def test_p5_a_file_of_another_language_is_refused(tmp_path: Path):
    await create_knowledge("sqlite", path=tmp_path / "kb.db", language="german", sources=["Bücher."]).ready()
    with pytest.raises(AKConfigError, match="german"):
        await create_knowledge("sqlite", path=tmp_path / "kb.db", mode="keyword").search("Buch")
