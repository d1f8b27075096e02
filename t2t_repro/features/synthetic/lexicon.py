"""The nouns and adjectives of the grammar, in both languages.

Each English form has one reading and one German counterpart, so that the translation
is a function; words with two readings are left out.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from t2t_repro.features.synthetic.english import plural
from t2t_repro.features.synthetic.german import Gender, Noun
from t2t_repro.features.synthetic.word_traits import (
    Trait,
    parse_traits,
    table_rows,
    word_pairs,
)

# English, German, gender (* = weak declension), plural, genitive ending, traits.
_NOUNS = """
man Mann m Männer es man
father Vater m Väter s man,relation
brother Bruder m Brüder s man,relation
uncle Onkel m Onkel s man,relation
teacher Lehrer m Lehrer s man,relation
doctor Arzt m Ärzte es man,relation
baker Bäcker m Bäcker s man
gardener Gärtner m Gärtner s man
king König m Könige s man
farmer Bauer m* Bauern - man
student Student m* Studenten - man
boy Junge m* Jungen - man,relation
neighbour Nachbar m* Nachbarn - man,relation
woman Frau f Frauen - woman
mother Mutter f Mütter - woman,relation
sister Schwester f Schwestern - woman,relation
daughter Tochter f Töchter - woman,relation
aunt Tante f Tanten - woman,relation
queen Königin f Königinnen - woman
girl Mädchen n Mädchen s child,relation
child Kind n Kinder es child,relation
dog Hund m Hunde es animal
cat Katze f Katzen - animal
horse Pferd n Pferde es animal
bird Vogel m Vögel s animal
cow Kuh f Kühe - animal
pig Schwein n Schweine s animal
mouse Maus f Mäuse - animal
bear Bär m* Bären - animal
lion Löwe m* Löwen - animal
duck Ente f Enten - animal
book Buch n Bücher es thing,readable,compound_head
letter Brief m Briefe es thing,readable,openable
picture Bild n Bilder es thing,compound_head,building_part
newspaper Zeitung f Zeitungen - thing,readable
lamp Lampe f Lampen - thing,repairable,compound_head,hard
map Karte f Karten - thing,compound_head
table Tisch m Tische es thing,compound_head,hard
chair Stuhl m Stühle s thing,repairable,compound_head,hard
key Schlüssel m Schlüssel s thing,compound_head,building_part
bag Tasche f Taschen - thing,accessory,openable,compound_head
umbrella Regenschirm m Regenschirme s thing,accessory
knife Messer n Messer s thing,washable
cup Tasse f Tassen - thing,washable
plate Teller m Teller s thing,washable,compound_head,hard
bottle Flasche f Flaschen - thing,openable
coat Mantel m Mäntel s thing,clothing,accessory,compound_head
jacket Jacke f Jacken - thing,clothing,accessory,washable,compound_head
hat Hut m Hüte es thing,accessory,compound_head
shirt Hemd n Hemden es thing,clothing,accessory,washable,compound_head
car Auto n Autos s thing,repairable,washable
bicycle Fahrrad n Fahrräder s thing,repairable
clock Uhr f Uhren - thing,repairable,compound_head,hard
door Tür f Türen - thing,openable,building_part,compound_head,hard
window Fenster n Fenster s thing,openable,building_part,compound_head
box Kiste f Kisten - thing,openable
suitcase Koffer m Koffer s thing,openable,accessory
gift Geschenk n Geschenke s thing,openable
bed Bett n Betten es thing,compound_head
blanket Decke f Decken - thing,washable,compound_head
ring Ring m Ringe s thing,compound_head,hard
roll Brötchen n Brötchen s food
apple Apfel m Äpfel s food
cake Kuchen m Kuchen s food
egg Ei n Eier s food
soup Suppe f Suppen - food
potato Kartoffel f Kartoffeln - food
pear Birne f Birnen - food
sausage Wurst f Würste - food
tomato Tomate f Tomaten - food
house Haus n Häuser es place,enterable,landmark,interior,compound_head,hard
garden Garten m Gärten s place,enterable,compound_head
kitchen Küche f Küchen - place,enterable,interior
school Schule f Schulen - place,enterable,landmark,visitable,origin
city Stadt f Städte - place,enterable,visitable,origin
forest Wald m Wälder es place,enterable
village Dorf n Dörfer es place,enterable,visitable,origin
church Kirche f Kirchen - place,enterable,landmark,visitable
hotel Hotel n Hotels s place,enterable,landmark,origin
museum Museum n Museen s place,enterable,landmark,visitable,origin
library Bibliothek f Bibliotheken - place,enterable,landmark,interior,origin
park Park m Parks s place,enterable,visitable
room Zimmer n Zimmer s place,enterable,interior,compound_head
office Büro n Büros s place,enterable,interior
bridge Brücke f Brücken - place,surface,landmark
mountain Berg m Berge es place,surface
island Insel f Inseln - place,surface,visitable
station Bahnhof m Bahnhöfe s place,enterable,landmark,visitable
tree Baum m Bäume es place,landmark
"""

# First parts of compounds and their German linking forms.
MODIFIERS = word_pairs(
    "garden:Garten kitchen:Küchen school:Schul city:Stadt hotel:Hotel office:Büro "
    "winter:Winter summer:Sommer night:Nacht travel:Reise guest:Gäste village:Dorf "
    "holiday:Ferien family:Familien forest:Wald church:Kirchen museum:Museums "
    "library:Bibliotheks station:Bahnhofs party:Party mountain:Berg"
)
MATERIALS = word_pairs("stone:Stein glass:Glas gold:Gold")


@dataclass(frozen=True, slots=True)
class Adjective:
    """An adjective in both languages.

    Attributes:
        english: The English positive.
        german: The German positive, uninflected.
        stem: The German stem, which takes the endings.
        english_comparative: The English comparative, or "".
        german_comparative: The German comparative, or "".
        traits: Nouns with any of these traits can have it.
    """

    english: str
    german: str
    stem: str
    english_comparative: str
    german_comparative: str
    traits: Trait


# English, German[/stem], comparatives or -, traits of the nouns that can have it.
_ADJECTIVES = """
old alt older älter man,woman,animal,thing,place
young jung younger jünger people,animal
big groß bigger größer animal,thing,food,place
small klein smaller kleiner child,animal,thing,food,place
strong stark stronger stärker man,woman,animal
clever klug cleverer klüger people,animal
friendly freundlich friendlier freundlicher people,animal
tired müde/müd - - people,animal
hungry hungrig - - people,animal
sick krank - - people,animal
happy glücklich happier glücklicher people
sad traurig sadder trauriger people
famous berühmt more-famous berühmter man,woman,place
rich reich richer reicher man,woman
new neu newer neuer thing,place
red rot - - thing,clothing
blue blau - - thing,clothing
green grün - - thing
white weiß - - thing,animal
black schwarz - - thing,clothing,animal
yellow gelb - - thing
heavy schwer heavier schwerer thing
expensive teuer/teur more-expensive teurer thing,food
cheap billig cheaper billiger thing,food
beautiful schön more-beautiful schöner thing,place,animal,woman
dirty schmutzig dirtier schmutziger thing,place
clean sauber cleaner sauberer thing,place
dark dunkel/dunkl darker dunkler place
quiet ruhig quieter ruhiger place
fresh frisch fresher frischer food
warm warm warmer wärmer food,place
cold kalt colder kälter food,place
"""

_GENDERS = {"m": Gender.MASCULINE, "f": Gender.FEMININE, "n": Gender.NEUTER}


def _noun(row: list[str]) -> Noun:
    english, german, gender, german_plural, genitive, traits = row
    return Noun(
        english=english,
        english_plural=plural(english),
        german=german,
        gender=_GENDERS[gender.removesuffix("*")],
        plural=german_plural,
        genitive=german + genitive.strip("-"),
        weak=gender.endswith("*"),
        traits=parse_traits(traits),
    )


def _adjective(row: list[str]) -> Adjective:
    english, german, comparative, german_comparative, traits = row
    word, _, stem = german.partition("/")
    return Adjective(
        english=english,
        german=word,
        stem=stem or word,
        english_comparative=comparative.strip("-").replace("-", " "),
        german_comparative=german_comparative.strip("-"),
        traits=parse_traits(traits),
    )


NOUNS = tuple(_noun(row) for row in table_rows(_NOUNS))
ADJECTIVES = tuple(_adjective(row) for row in table_rows(_ADJECTIVES))


@functools.cache
def nouns(traits: Trait) -> tuple[Noun, ...]:
    """Return the nouns that have any of the traits."""
    return tuple(noun for noun in NOUNS if noun.traits & traits)


@functools.cache
def adjectives(traits: Trait) -> tuple[Adjective, ...]:
    """Return the adjectives for nouns that have any of the traits."""
    return tuple(a for a in ADJECTIVES if a.traits & traits)


@functools.cache
def comparable_adjectives(traits: Trait) -> tuple[Adjective, ...]:
    """Return the adjectives with a comparative for nouns with any of the traits."""
    return tuple(a for a in adjectives(traits) if a.english_comparative)
