"""The guards of masked values in texts."""

from tools.mutants.mutant import Mutant

VALUES = "layers/core/roundsman/model/masked_values.py"
PROBLEMS = "layers/core/roundsman/submission/masked_problems.py"
ATTEMPT = "layers/core/roundsman/agents/attempt.py"

TESTS = "tests/unit/model/test_masked_values.py"
FORMS = f"{TESTS}::test_a_value_is_found_in_each_of_its_forms"
SHORT = f"{TESTS}::test_a_short_value_is_found_as_it_is_and_as_a_whole_word_only"
CUT = f"{TESTS}::test_a_cut_leaves_no_beginning_of_a_value"

MASKED = (
    Mutant(
        name="what-is-in-a-masked-field-is-masked",
        file=VALUES,
        old="any(self._is_field(path[: length + 1]) for length in range(len(path)))",
        new="self._is_field(path)",
        tests=(f"{TESTS}::test_values_have_their_paths",),
        why="a masked card is shown, because the mark is at the object that has its number",
    ),
    Mutant(
        name="a-value-is-found-with-blanks-and-dashes",
        file=VALUES,
        old='if character == "+" or character.isspace() or category(character) == "Pd":',
        new="if False:",
        tests=(FORMS,),
        why="a card number in groups of four is in an alert",
    ),
    Mutant(
        name="a-value-is-found-in-any-case",
        file=VALUES,
        old="folded = character.casefold()",
        new="folded = character",
        tests=(FORMS,),
        why="a name in capital letters is in an alert",
    ),
    Mutant(
        name="a-value-is-found-in-escapes",
        file=VALUES,
        old="for escape in _ESCAPES.finditer(text) if escapes else ():",
        new="for escape in ():",
        tests=(FORMS,),
        why="the address of a failed call shows what was masked",
    ),
    Mutant(
        name="a-value-that-looks-like-an-escape-is-found",
        file=VALUES,
        old="    return _compared(text), _compared(text, escapes=False)\n",
        new="    return (_compared(text),)\n",
        tests=(FORMS,),
        why="a value with a backslash is shown",
    ),
    Mutant(
        name="every-place-of-a-value-is-replaced",
        file=VALUES,
        old="                at = compared.find(value, at + len(value))\n",
        new="                break\n",
        tests=(FORMS,),
        why="a message that names the value twice shows it",
    ),
    Mutant(
        name="what-overlaps-is-replaced-to-its-end",
        file=VALUES,
        old="            done = max(done, end)\n",
        new="            done = end\n",
        tests=(f"{TESTS}::test_what_overlaps_is_replaced_once_and_what_touches_twice",),
        why="the end of the longer of two values is shown",
    ),
    Mutant(
        name="a-short-value-is-a-whole-word",
        file=VALUES,
        old=r'rf"(?<!\w){re.escape(text)}(?!\w)"',
        new="re.escape(text)",
        tests=(SHORT,),
        why="a quantity of 1 hides each 1 of every date and number",
    ),
    Mutant(
        name="a-short-value-is-found",
        file=VALUES,
        old="                short |= {text, canonical_json(text)[1:-1]}\n",
        new="                pass\n",
        tests=(SHORT,),
        why="a masked PIN is shown",
    ),
    Mutant(
        name="a-cut-leaves-no-beginning",
        file=VALUES,
        old="for value in self.long) if was_cut else 0",
        new="for value in ()) if False else 0",
        tests=(CUT,),
        why="a message that is cut within a card number shows all but its last digit",
    ),
    Mutant(
        name="too-many-values-hide-every-text",
        file=VALUES,
        old="            if len(long) + len(short) > MOST_VALUES:\n",
        new="            if False:\n",
        tests=(f"{TESTS}::test_without_known_values_no_text_is_shown",),
        why="an order of a hundred thousand values holds up every decision about it",
    ),
    Mutant(
        name="without-its-values-no-text-is-shown",
        file=VALUES,
        old="        if self.everything:\n            return MASK\n",
        new="",
        tests=(f"{TESTS}::test_without_known_values_no_text_is_shown",),
        why="what was masked is shown once its order cannot be read",
    ),
    Mutant(
        name="a-problem-quotes-no-masked-value",
        file=PROBLEMS,
        old="replace(one, message=texts.text(one.message)) for one in problems",
        new="replace(one, message=one.message) for one in problems",
        tests=(
            "tests/unit/submission/test_masked_problems.py::test_a_problem_of_the_applications_function_quotes_no_masked_value",
            "tests/unit/submission/test_masked_problems.py::test_neither_does_that_of_a_correction",
        ),
        why="a rejected order shows the value that its author's check has quoted",
    ),
)
