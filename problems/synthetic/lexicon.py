"""The words of the synthetic grammar, in both languages.

Each English form has one reading and one German counterpart, so that the
translation is a function. Words with two readings (saw/watch as nouns, the past
tense of "read") are left out. Tags say what a noun may do:

h he, q she, x neither (people); a animal; t thing; f food; l place; r readable;
b worn; c worn or carried; o can be opened; m can be repaired; w can be washed;
i interior; e one can be in it; u one can be on it; n one can stand near it;
v worth a visit; k part of a building; d head of compounds; y kin or the like.
"""

from __future__ import annotations

from typing import NamedTuple

from .english import EnglishVerb, plural, verb_forms
from .german import (
    HABEN,
    SEIN,
    GermanVerb,
    Noun,
    participle,
    past_forms,
    present_forms,
)

# English, German, gender (* = weak declension), plural, genitive ending, tags.
_NOUNS = """
man Mann m Männer es h|father Vater m Väter s hy|brother Bruder m Brüder s hy
uncle Onkel m Onkel s hy|teacher Lehrer m Lehrer s hy|doctor Arzt m Ärzte es hy
baker Bäcker m Bäcker s h|gardener Gärtner m Gärtner s h|king König m Könige s h
farmer Bauer m* Bauern - h|student Student m* Studenten - h|boy Junge m* Jungen - hy
neighbour Nachbar m* Nachbarn - hy|woman Frau f Frauen - q|mother Mutter f Mütter - qy
sister Schwester f Schwestern - qy|daughter Tochter f Töchter - qy
aunt Tante f Tanten - qy|queen Königin f Königinnen - q|girl Mädchen n Mädchen s xy
child Kind n Kinder es xy|dog Hund m Hunde es a|cat Katze f Katzen - a
horse Pferd n Pferde es a|bird Vogel m Vögel s a|cow Kuh f Kühe - a
pig Schwein n Schweine s a|mouse Maus f Mäuse - a|bear Bär m* Bären - a
lion Löwe m* Löwen - a|duck Ente f Enten - a|book Buch n Bücher es trd
letter Brief m Briefe es tro|picture Bild n Bilder es tdk
newspaper Zeitung f Zeitungen - tr|lamp Lampe f Lampen - tmd|map Karte f Karten - td
table Tisch m Tische es td|chair Stuhl m Stühle s tmd|key Schlüssel m Schlüssel s tdk
bag Tasche f Taschen - tcod|umbrella Regenschirm m Regenschirme s tc
knife Messer n Messer s tw|cup Tasse f Tassen - tw|plate Teller m Teller s twd
bottle Flasche f Flaschen - to|coat Mantel m Mäntel s tbcd|hat Hut m Hüte es tbcd
shirt Hemd n Hemden es tbcwd|car Auto n Autos s tmw|bicycle Fahrrad n Fahrräder s tm
clock Uhr f Uhren - tmd|door Tür f Türen - tokd|window Fenster n Fenster s tokd
box Kiste f Kisten - to|suitcase Koffer m Koffer s toc|gift Geschenk n Geschenke s to
bed Bett n Betten es td|blanket Decke f Decken - twd|ring Ring m Ringe s td
roll Brötchen n Brötchen s f|apple Apfel m Äpfel s f|cake Kuchen m Kuchen s f
egg Ei n Eier s f|soup Suppe f Suppen - f|potato Kartoffel f Kartoffeln - f
pear Birne f Birnen - f|sausage Wurst f Würste - f|tomato Tomate f Tomaten - f
house Haus n Häuser es lenid|garden Garten m Gärten s led|kitchen Küche f Küchen - lei
school Schule f Schulen - lenv|city Stadt f Städte - lev|forest Wald m Wälder es le
village Dorf n Dörfer es lev|church Kirche f Kirchen - lenv|hotel Hotel n Hotels s len
museum Museum n Museen s lenv|library Bibliothek f Bibliotheken - leni
park Park m Parks s lev|room Zimmer n Zimmer s leid|office Büro n Büros s lei
bridge Brücke f Brücken - lun|mountain Berg m Berge es lu|island Insel f Inseln - luv
station Bahnhof m Bahnhöfe s lenv|tree Baum m Bäume es ln
"""

# First parts of compounds and their German linking forms.
MODIFIERS = tuple(
    tuple(pair.split(":"))
    for pair in (
        "garden:Garten kitchen:Küchen school:Schul city:Stadt hotel:Hotel "
        "office:Büro winter:Winter summer:Sommer night:Nacht travel:Reise "
        "guest:Gäste village:Dorf holiday:Ferien family:Familien stone:Stein "
        "glass:Glas gold:Gold forest:Wald church:Kirchen museum:Museums "
        "library:Bibliotheks station:Bahnhofs party:Party mountain:Berg"
    ).split()
)


class Adjective(NamedTuple):
    """An adjective; `stem` takes the endings, comparatives may be empty."""

    english: str
    german: str
    stem: str
    english_comparative: str
    german_comparative: str
    tags: str


# English, German[/stem], comparatives or -, tags of the nouns it goes with.
_ADJECTIVES = """
old alt older älter hqatl|young jung younger jünger hqxa|big groß bigger größer atfl
small klein smaller kleiner xatfl|strong stark stronger stärker hqa
clever klug cleverer klüger hqxa|friendly freundlich friendlier freundlicher hqxa
tired müde/müd - - hqxa|hungry hungrig - - hqxa|sick krank - - hqxa
happy glücklich happier glücklicher hqx|sad traurig sadder trauriger hqx
famous berühmt more-famous berühmter hql|rich reich richer reicher hq
new neu newer neuer tl|red rot - - tb|blue blau - - tb|green grün - - t
white weiß - - ta|black schwarz - - tba|yellow gelb - - t
heavy schwer heavier schwerer t|expensive teuer/teur more-expensive teurer tf
cheap billig cheaper billiger tf|beautiful schön more-beautiful schöner tlaq
dirty schmutzig dirtier schmutziger tl|clean sauber cleaner sauberer tl
dark dunkel/dunkl darker dunkler l|quiet ruhig quieter ruhiger l
fresh frisch fresher frischer f|warm warm warmer wärmer fl|cold kalt colder kälter fl
"""


class Verb(NamedTuple):
    """A verb on both sides.

    Attributes:
        english: its English forms.
        german: its German forms.
        frame: "intransitive", "accusative", "dative", "ditransitive",
            "prepositional", "motion", "that", "whether" or "control".
        preposition: English preposition of the complement, if any.
        german_preposition: of a prepositional frame.
        german_case: "a" or "d", the case that this preposition governs.
        subjects: noun tags of the possible subjects.
        objects: noun tags of the possible objects.
        stative: whether progressive forms and adverbs of manner are out.
        plain: whether only the simple tenses are in use.
        perfect_only: whether the simple past equals another form in English.
    """

    english: EnglishVerb
    german: GermanVerb
    frame: str
    preposition: str
    german_preposition: str
    german_case: str
    subjects: str
    objects: str
    stative: bool
    plain: bool
    perfect_only: bool


_PARTICLES = {
    "up": " (PRT (RP up))",
    "on": " (PRT (RP on))",
    "away": " (PRT (RP away))",
    "back": " (ADVP (RB back))",
    "along": " (ADVP (RB along))",
    "asleep": " (ADJP (JJ asleep))",
}
_PEOPLE = "hqx"

# English base[/past[/participle]][+particle][>preposition]; German
# prefix+infinitive[/changed stem of du and er]; participle or - where regular;
# auxiliary h or s, then flags (S stative, P plain, N no simple past); subjects;
# objects or German preposition:case:objects.
_FRAMES = {
    "intransitive": """
sleep/slept schlafen/schläf geschlafen h people,a|work arbeiten - h people
dance tanzen - h people|sing/sang/sung singen gesungen h people
swim/swam/swum schwimmen geschwommen s people,a|arrive an+kommen angekommen s people
wake/woke/woken+up auf+wachen - s people,a|get/got/got+up auf+stehen aufgestanden s people
fall/fell/fallen+asleep ein+schlafen/schläf eingeschlafen s people,a
come/came/come+back zurück+kommen zurückgekommen s people,a""",
    "accusative": """
see/saw/seen sehen/sieh gesehen hS people,a people,a,t,l|buy/bought kaufen - h people t,f
sell/sold verkaufen - h people t,f|find/found finden gefunden h people,a people,a,t
carry tragen/träg getragen h people t,f|read lesen/lies gelesen hN people r
eat/ate/eaten essen/iss gegessen h people,a f|wash waschen/wäsch gewaschen h people w
open auf+machen - h people o|close zu+machen - h people o|pick+up ab+holen - h people people,t
call an+rufen angerufen h people people|invite ein+laden/läd eingeladen h people people
visit besuchen - h people people,v|know/knew/known kennen gekannt hSP people people
love lieben - hSP people people,a|look>for suchen - h people,a people,a,t
repair reparieren - h people m|throw/threw/thrown+away weg+werfen/wirf weggeworfen h people t
bring/brought+along mit+bringen mitgebracht h people t,f|put+on an+ziehen angezogen hN people b
clean+up auf+räumen - h people i|have/had haben - hSP people t,a""",
    "dative": """
help helfen/hilf geholfen h people people|thank danken - h people people
follow folgen - s people,a people,a|answer antworten - h people people
listen>to zu+hören - h people people""",
    "ditransitive": """
give/gave/given geben/gib gegeben h people t,f|show/showed/shown zeigen - h people t
send/sent schicken - h people t|lend/lent leihen geliehen h people t""",
    "prepositional": """
wait>for warten - h people,a auf:a:people,a|dream>of träumen - h people von:d:people,a,t,l
talk>about sprechen/sprich gesprochen h people über:a:people,a,t,l
think/thought>about nach+denken nachgedacht h people über:a:people,a,t,l""",
    "motion": """
go/went/gone gehen gegangen s people|drive/drove/driven fahren/fähr gefahren s people
run/ran/run laufen/läuf gelaufen s people,a""",
    "that": """
say/said sagen - hS people|know/knew/known wissen gewusst hSP people
believe glauben - hSP people|hope hoffen - hSP people""",
    "whether": "ask fragen - hS people",
    "control": """
try versuchen - hS people|promise versprechen/versprich versprochen hS people
forget/forgot/forgotten vergessen/vergiss vergessen hS people""",
}


def _rows(table: str) -> list[list[str]]:
    lines = table.strip().replace("|", "\n").split("\n")
    return [line.split() for line in lines]


def _noun(row: list[str]) -> Noun:
    english, german, gender, german_plural, genitive, tags = row
    column = "mfn".index(gender[0])
    genitive = german + genitive.strip("-")
    weak = gender.endswith("*")
    return Noun(
        english, plural(english), german, column, german_plural, genitive, weak, tags
    )


def _adjective(row: list[str]) -> Adjective:
    english, german, comparative, german_comparative, tags = row
    word, _, stem = german.partition("/")
    return Adjective(
        english,
        word,
        stem or word,
        comparative.strip("-").replace("-", " "),
        german_comparative.strip("-"),
        tags,
    )


def _english_verb(text: str) -> tuple[EnglishVerb, str]:
    text, _, preposition = text.partition(">")
    text, _, particle = text.partition("+")
    base, past, third_form = (text + "//").split("/")[:3]
    forms = verb_forms(base, past, third_form)
    if base in ("read", "put"):
        forms = forms._replace(participle=base)
    return forms._replace(particle=_PARTICLES.get(particle, "")), preposition


def _german_verb(text: str, past_participle: str, sein: bool) -> GermanVerb:
    prefix, _, rest = text.rpartition("+")
    infinitive, _, changed = rest.partition("/")
    if past_participle == "-":
        past_participle = participle(prefix, infinitive)
    present, preterite = present_forms(infinitive, changed), None
    if infinitive == "wissen":
        present = ("weiß", "weißt", "weiß", "wissen", "wissen")
        preterite = past_forms("wusste")
    if infinitive == "haben":
        present, preterite = HABEN, past_forms("hatte")
    auxiliary = SEIN if sein else HABEN
    return GermanVerb(
        prefix, infinitive, present, past_participle, auxiliary, preterite
    )


def _verb(frame: str, row: list[str]) -> Verb:
    english, preposition = _english_verb(row[0])
    german = _german_verb(row[1], row[2], row[3][0] == "s")
    flags = row[3][1:]
    subjects, objects = (" ".join(row[4:]).replace("people", _PEOPLE) + " ").split(" ")[
        :2
    ]
    german_preposition, german_case = "", "d" if frame == "dative" else "a"
    if frame == "prepositional":
        german_preposition, german_case, objects = objects.split(":")
    return Verb(
        english,
        german,
        frame,
        preposition,
        german_preposition,
        german_case,
        subjects.replace(",", ""),
        objects.replace(",", ""),
        "S" in flags,
        "P" in flags,
        "N" in flags,
    )


NOUNS = tuple(_noun(row) for row in _rows(_NOUNS))
ADJECTIVES = tuple(_adjective(row) for row in _rows(_ADJECTIVES))
VERBS = tuple(
    _verb(frame, row) for frame, table in _FRAMES.items() for row in _rows(table)
)
BE = Verb(
    EnglishVerb("be", "is", "was", "been", "being"),
    GermanVerb("", "sein", SEIN, "gewesen", SEIN, past_forms("war")),
    *("copula", "", "", "a", "hqxatfl", ""),
    *(True, True, False),
)
COST = Verb(
    verb_forms("cost", "cost"),
    GermanVerb("", "kosten", present_forms("kosten"), "gekostet", HABEN),
    *("price", "", "", "a", "t", ""),
    *(True, True, True),
)


def nouns(tags: str) -> tuple[Noun, ...]:
    """Returns the nouns that carry any of the tags."""
    return tuple(noun for noun in NOUNS if set(tags) & set(noun.tags))
