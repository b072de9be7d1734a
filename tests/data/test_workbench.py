"""Judgments of OpenSearch's Search Relevance Workbench and of Elasticsearch's rank evaluation."""

import io
import json

import pytest

from podium.data.formats.workbench import read_workbench
from podium.errors import DataError

EXPECTED = {("red dress", "B077ZJXCTS"): 3.0, ("red dress", "B071S6LTJJ"): 2.0, ("q", "1"): 0.0}
RATINGS = [
    {
        "query": "red dress",
        "ratings": [
            {"docId": "B077ZJXCTS", "rating": "3.000"},
            {"docId": "B071S6LTJJ", "rating": "2.000"},
        ],
    },
    {"query": "q", "ratings": [{"docId": "1", "rating": 0}]},
]
FORMS = {
    "imported": {"name": "x", "type": "IMPORT_JUDGMENT", "judgmentRatings": RATINGS},
    "by query": {"judgmentRatings": {each["query"]: each["ratings"] for each in RATINGS}},
    "an answer": {"hits": {"hits": [{"_source": {"judgmentRatings": [each]}} for each in RATINGS]}},
    "_rank_eval": {
        "requests": [
            {
                "id": each["query"],
                "request": {"query": {"match_all": {}}},
                "ratings": [
                    {"_index": "shop", "_id": rated["docId"], "rating": float(rated["rating"])}
                    for rated in each["ratings"]
                ],
            }
            for each in RATINGS
        ]
    },
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_read(form: str) -> None:
    for indent in (None, 2):
        judged = read_workbench(io.BytesIO(json.dumps(FORMS[form], indent=indent).encode()))
        columns = judged.query_id_of_row(), judged.document_ids
        rows = zip(*(each.to_pylist() for each in columns), strict=True)
        assert dict(zip(rows, judged.labels.tolist(), strict=True)) == EXPECTED


RATED = '{"judgmentRatings": [{"query": "q", "ratings": [{"docId": "a", "rating": %s}]}]}'


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", "[" * 9999, '{"judgmentRatings": 3}', '{"judgmentRatings": [{}]}'),
        *(RATED % rating for rating in ('"good"', "NaN", "[]", "null")),
    ],
)
def test_anything_else_is_an_error(text: str) -> None:
    with pytest.raises(DataError):
        read_workbench(io.BytesIO(text.encode()))
