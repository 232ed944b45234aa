"""The tables of the index, and the names by which it is known that a file on disk is one of ours, of this version."""

from __future__ import annotations

import unicodedata

VERSION = 3
"""Raised with every change to what the tables hold or how text is analysed; an index of another version is made anew."""

FORMAT = f"okf-{VERSION}-unicode-{unicodedata.unidata_version}"
"""Part of an index's name. Text is folded by Python's tables, and what was put in has to be taken out in the same form."""

EVERY = "x"
"""The one term of the column `every`, which each concept has and which weighs nothing."""

WEIGHTS = (8.0, 5.0, 3.0, 3.0, 1.0, 0.0)
"""Weights of title, tags, type, description, body and `every` in a rank."""

CONCEPT, INDEX, LOG, FAULTY = 1, 2, 3, 0
"""What a document is."""

TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE document (
    id INTEGER PRIMARY KEY,
    path TEXT NOT NULL UNIQUE,
    folder TEXT NOT NULL,
    kind INTEGER NOT NULL,
    version TEXT NOT NULL,
    written REAL NOT NULL,
    nfc TEXT,
    type TEXT NOT NULL,
    type_key TEXT NOT NULL,
    title TEXT NOT NULL,
    description TEXT NOT NULL,
    tags TEXT NOT NULL,
    trust TEXT NOT NULL,
    status TEXT NOT NULL,
    deadline REAL
);
CREATE TABLE body (id INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE tag (key TEXT NOT NULL, document INTEGER NOT NULL, PRIMARY KEY (key, document)) WITHOUT ROWID;
CREATE TABLE link (
    source INTEGER NOT NULL, number INTEGER NOT NULL, place INTEGER NOT NULL, target TEXT NOT NULL,
    PRIMARY KEY (source, number, place)
) WITHOUT ROWID;
CREATE TABLE fault (
    path TEXT NOT NULL, number INTEGER NOT NULL, code TEXT NOT NULL, line INTEGER, message TEXT NOT NULL,
    PRIMARY KEY (path, number)
) WITHOUT ROWID;
CREATE TABLE skipped (path TEXT PRIMARY KEY, reason TEXT NOT NULL) WITHOUT ROWID;
CREATE VIRTUAL TABLE words USING fts5(
    title, tags, type, description, body, every,
    content = '', tokenize = "unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'"
);
CREATE VIRTUAL TABLE term USING fts5vocab(words, row);
"""

INDEXES = """
CREATE INDEX document_folder ON document (folder, kind, path);
CREATE INDEX document_type ON document (type_key, type) WHERE kind = 1;
CREATE INDEX document_kind ON document (kind, path) WHERE kind <> 1;
CREATE INDEX document_nfc ON document (nfc) WHERE nfc IS NOT NULL;
CREATE INDEX tag_document ON tag (document);
CREATE INDEX link_target ON link (target);
"""
