"""A synchronous English-German grammar: a sentence, its translation, and its tree.

Read the modules in this order. All others use `words`, `traits`, `tenses` and `draw`.
`german` and `english` inflect; `lexicon` and `verbs` list the words; `phrases` and
`adverbials` draw the parts of a clause; `linearization` orders them; `clauses` and
`relatives` draw clauses; `sentences`, `questions` and `anaphora` join clauses;
`grammar` makes a corpus of sentences. The grammar needs only the standard library.
"""

from t2t_repro.features import Feature

FEATURE = Feature()
