"""What the model is asked when nobody says: chat prompts of many kinds, and reading one's own."""

import random
from pathlib import Path

from mtplx_engine.errors import ModelError

_TOPICS = (
    "glaciers", "beekeeping", "the violin", "tidal power", "medieval towns", "the human heart",
    "compound interest", "mushrooms", "lighthouses", "the Silk Road", "public transport",
    "origami", "coral reefs", "the periodic table", "typewriters", "night trains", "bread baking",
    "marathon training", "sleep", "crossword puzzles", "the Moon landings", "windmills",
    "antibiotics", "chess openings", "pottery", "the Nile", "open-source software", "satellites",
    "folk tales", "soil", "elections", "the water supply of a city", "owls", "street food",
    "probability", "the history of zero", "houseplants", "deserts", "theatre",
    "hash tables", "the sense of smell", "bridges", "migrating birds", "first aid", "cheese",
)  # fmt: skip

_TASKS = (
    "Tell me about {}.",
    "Explain {} in simple words.",
    "Write a short story in which {} matter or play a part.",
    "List five surprising facts about {}.",
    "What should a beginner know about {}?",
    "Write an email to a colleague about {}.",
    "Compare two different views of {}.",
    "Write a dialogue between a teacher and a pupil about {}.",
    "Write a four-line poem about {}.",
    "Give step-by-step advice on something to do with {}.",
)

_SINGLE = (
    "Hello!",
    "What can you help me with?",
    "What is 48 divided by 6, and how do you work it out?",
    "A train leaves at 9:40 and arrives at 12:05. How long does the trip take?",
    "Write a Python function that counts the words in a string.",
    "Write a Python class for a bank account with deposits and withdrawals.",
    "Write a SQL query that finds the ten most recent orders of a customer.",
    "Write a shell command that lists the largest files in a folder.",
    "Explain this code: [x * x for x in range(10) if x % 2 == 0]",
    "Return a JSON object that describes a book with a title, an author and three tags.",
    "Translate 'Where is the nearest station?' into French, Spanish and German.",
    "Correct the grammar: She don't has any idea what are they doing.",
    "Make this sound more polite: Send me the report now.",
    "Summarise the plot of a well-known fairy tale in three sentences.",
    "Suggest three names for a small bakery and say why.",
    "Make a packing list for a week in the mountains.",
    "Plan a day in a city that somebody visits for the first time.",
    "Give me a recipe for a simple vegetable soup.",
    "What is the difference between weather and climate?",
    "Which is heavier, a kilogram of iron or a kilogram of feathers?",
    "Who wrote Don Quixote, and what is it about?",
    "Write a product description for a rain jacket.",
    "Write a polite complaint about a late delivery.",
    "Draft a short speech for a friend's birthday.",
    "How can I concentrate better when I study?",
    "Rewrite as a list: we need milk, two loaves of bread, some apples and a newspaper.",
    "Classify the mood of this sentence: I waited an hour and nobody came.",
    "Continue: It was the last evening of the summer, and",
)


def default_prompts() -> list[str]:
    """A few hundred prompts, always in the same order."""
    crossed = [task.format(topic) for topic in _TOPICS for task in _TASKS]
    prompts = [*_SINGLE, *crossed]
    random.Random(0).shuffle(prompts)
    return prompts


def read_prompts(path: Path) -> list[str]:
    """Read one prompt per line; blank lines are left out.

    Raises:
        ModelError: The file cannot be read or holds no prompt.
    """
    prompts = [line.strip() for line in read_text(path).splitlines() if line.strip()]
    if not prompts:
        raise ModelError(f"{path} holds no prompts; one per line is expected.")
    return prompts


def read_text(path: Path) -> str:
    """Read a text file.

    Raises:
        ModelError: It cannot be read or holds nothing but blanks.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} cannot be read as text: {error}") from error
    if not text.strip():
        raise ModelError(f"{path} is empty.")
    return text
