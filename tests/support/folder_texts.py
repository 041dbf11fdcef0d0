"""Texts of folders with the values that they stand for.

Python computes them for one file, Spark for many.
"""

FOLDER_TEXTS: dict[str, str | None] = {
    "x%20y": "x y",
    "12%3A00": "12:00",
    "a%2Fb": "a/b",
    "100%25": "100%",
    "a+b": "a+b",
    "a=b": "a=b",
    "gr%C3%B6": "gr\u00f6",
    "gr\u00f6\u00dfe": "gr\u00f6\u00dfe",
    "no%zz": "no%zz",
    "%20%zz": "%20%zz",
    "%C3%28": "\ufffd(",
    "": "",
    "__HIVE_DEFAULT_PARTITION__": None,
    "[x]%20": "[x] ",
}
