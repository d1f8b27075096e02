"""The nouns and adjectives of the synthetic grammar, in both languages.

Each English form has one reading and one German counterpart, so that the
translation is a function; words with two readings are left out. Tags say what a
noun may do:

h he, q she, x neither (people); a animal; t thing; f food; l place; r readable;
b worn; c worn or carried; o can be opened; m can be repaired; w can be washed;
i interior; e one can be in it; u one can be on it; n one can stand near it;
v worth a visit; k part of a building; d head of compounds; y kin or the like;
g people may come from it; j made of a hard material.
"""

from __future__ import annotations

from typing import NamedTuple

from .english import plural
from .german import Noun

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
newspaper Zeitung f Zeitungen - tr|lamp Lampe f Lampen - tmdj|map Karte f Karten - td
table Tisch m Tische es tdj|chair Stuhl m Stühle s tmdj|key Schlüssel m Schlüssel s tdk
bag Tasche f Taschen - tcod|umbrella Regenschirm m Regenschirme s tc
knife Messer n Messer s tw|cup Tasse f Tassen - tw|plate Teller m Teller s twdj
bottle Flasche f Flaschen - to|coat Mantel m Mäntel s tbcd|jacket Jacke f Jacken - tbcwd
hat Hut m Hüte es tcd|shirt Hemd n Hemden es tbcwd|car Auto n Autos s tmw
bicycle Fahrrad n Fahrräder s tm|clock Uhr f Uhren - tmdj|door Tür f Türen - tokdj
window Fenster n Fenster s tokd|box Kiste f Kisten - to|suitcase Koffer m Koffer s toc
gift Geschenk n Geschenke s to|bed Bett n Betten es td|blanket Decke f Decken - twd
ring Ring m Ringe s tdj|roll Brötchen n Brötchen s f|apple Apfel m Äpfel s f
cake Kuchen m Kuchen s f|egg Ei n Eier s f|soup Suppe f Suppen - f
potato Kartoffel f Kartoffeln - f|pear Birne f Birnen - f|sausage Wurst f Würste - f
tomato Tomate f Tomaten - f|house Haus n Häuser es lenidj|garden Garten m Gärten s led
kitchen Küche f Küchen - lei|school Schule f Schulen - lenvg|city Stadt f Städte - levg
forest Wald m Wälder es le|village Dorf n Dörfer es levg|church Kirche f Kirchen - lenv
hotel Hotel n Hotels s leng|museum Museum n Museen s lenvg
library Bibliothek f Bibliotheken - lenig|park Park m Parks s lev
room Zimmer n Zimmer s leid|office Büro n Büros s lei|bridge Brücke f Brücken - lun
mountain Berg m Berge es lu|island Insel f Inseln - luv
station Bahnhof m Bahnhöfe s lenv|tree Baum m Bäume es ln
"""


def word_pairs(text: str) -> tuple[tuple[str, str], ...]:
    """Reads "english:german english:german"."""
    pairs = (entry.partition(":") for entry in text.split())
    return tuple((english, german) for english, _, german in pairs)


# First parts of compounds and their German linking forms.
MODIFIERS = word_pairs(
    "garden:Garten kitchen:Küchen school:Schul city:Stadt hotel:Hotel office:Büro "
    "winter:Winter summer:Sommer night:Nacht travel:Reise guest:Gäste village:Dorf "
    "holiday:Ferien family:Familien forest:Wald church:Kirchen museum:Museums "
    "library:Bibliotheks station:Bahnhofs party:Party mountain:Berg"
)
MATERIALS = word_pairs("stone:Stein glass:Glas gold:Gold")


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


def table_rows(table: str) -> list[list[str]]:
    """Splits a table of words into rows and columns."""
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


NOUNS = tuple(_noun(row) for row in table_rows(_NOUNS))
ADJECTIVES = tuple(_adjective(row) for row in table_rows(_ADJECTIVES))


def nouns(tags: str) -> tuple[Noun, ...]:
    """Returns the nouns that carry any of the tags."""
    return tuple(noun for noun in NOUNS if set(tags) & set(noun.tags))
