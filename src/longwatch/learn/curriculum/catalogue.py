"""All families and their templates, in a fixed order."""

from collections.abc import Mapping
from functools import cache

from longwatch.learn.curriculum import basic, classic, derived, pipeline
from longwatch.learn.curriculum.classic import Classic
from longwatch.learn.curriculum.classics_graphs import GRAPHS, MACHINES
from longwatch.learn.curriculum.classics_numbers import DATES, LISTS, NUMBERS, RECURSION
from longwatch.learn.curriculum.classics_space import INTERVALS, MATRICES
from longwatch.learn.curriculum.classics_tables import TABLES
from longwatch.learn.curriculum.classics_text import DICTIONARIES, PARSING, STRINGS
from longwatch.learn.curriculum.template import Template

FAMILIES: Mapping[str, tuple[Classic, ...]] = {
    "lists": LISTS,
    "strings": STRINGS,
    "dictionaries": DICTIONARIES,
    "numbers": NUMBERS,
    "dates": DATES,
    "parsing": PARSING,
    "recursion": RECURSION,
    "matrices": MATRICES,
    "intervals": INTERVALS,
    "graphs": GRAPHS,
    "tables": TABLES,
    "machines": MACHINES,
}


@cache
def all_templates() -> tuple[Template, ...]:
    """Every template: the classics of each family, then everything that is composed over its items."""
    classics = (template for family, some in FAMILIES.items() for template in classic.templates(family, some))
    composed = (
        template for items in (*basic.ITEMS, *derived.ITEMS) for template in pipeline.templates(items)
    )
    return (*classics, *composed)
