"""A synchronous English-German grammar: a sentence, its translation, and its tree.

Read it from the bottom. `words`, `traits`, `tenses` and `draw` hold what all others
use; `german` and `english` inflect; `lexicon` and `verbs` hold the words; `phrases` and
`adverbials` draw the parts of a clause; `linearization` orders them; `clauses` and
`relatives` draw clauses; `sentences`, `questions` and `anaphora` put clauses together;
`grammar` makes a corpus of them. The package needs the standard library only.
"""
