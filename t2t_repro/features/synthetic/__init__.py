"""A synchronous English-German grammar: a sentence, its translation, and its tree.

Read the modules in this order. `word_traits` and `tenses` say what may be combined;
`german` and `english` inflect; `lexicon` reads the words of `data/words.txt`; `phrases`
draws noun phrases and adverbials, and `pronouns` chooses pronouns; `clauses` draws
clauses and orders their words, and `relatives` puts clauses into each other;
`sentence_patterns` and `anaphora` join clauses to sentences; `synthetic_corpus` makes a
corpus of them. The grammar needs only the standard library.
"""

from t2t_repro.features import Feature

FEATURE = Feature()
