"""Words that every text has, whatever its subject, for a stream of which nothing has been counted yet.

Each class has the share of documents (of about a hundred words, in a stream that is mostly English) in which a word
of the class is found. They need not be exact, since idf.py soon has counts of its own. What matters is that a topic
created from a query alone does not match on "the" or "der". The pieces that an apostrophe leaves (don't, l'eau) are
words here, as they are in analysis.py, and so are numbers.
"""

SHARES: dict[str, float] = {}


def _class(share: float, words: str) -> frozenset[str]:
    """Record the share of these words; the larger one, where a word belongs to two classes."""
    for word in words.split():
        SHARES[word] = max(share, SHARES.get(word, 0.0))
    return frozenset(words.split())


ENGLISH = _class(0.7, "the of to in and a") | _class(
    0.4,
    """
    for is it that on with by be as from this are was at has an which not have its will or we s i
    """,
)
ENGLISH |= _class(
    0.1,
    """
    you he they she all any been being both but can cannot could did do does done each either even ever every few had
    having her here him his how however if into itself just like made make many may me might more most much must my
    neither no nor now off often once one only other our out over own per same several shall should since so some still
    such than their them then there these those thus through too two under until up upon us use used using very via
    well were what when where whether while who whom whose why within without would yet your about above after again
    against almost along already also although always among another around because become before below between during
    first last new said says three time year years don t d ll m re ve u n
    """,
)
ENGLISH |= _class(
    0.04,
    """
    able across actually ago anyone anything away back became began behind best better big came come coming day days
    down eight else end especially etc far five four further gave get gets getting give given gives go goes going good
    got great hers herself himself instead keep kept kind knew know known least less let likely little long look looking
    lot mine moreover myself near need needs never next nine nobody none nothing nowhere old onto others otherwise
    ours ourselves part perhaps put quite rather really right saw say saying second see seem seems seen seven show six
    so something sometimes somewhere soon sure take taken ten than theirs themselves therefore thing things think
    though thought together took toward towards try unless want wants way week went whatever whenever wherever
    whichever whoever whole yes yesterday today tomorrow yours yourself yourselves
    january february march april june july august september october november december
    monday tuesday wednesday thursday friday saturday sunday
    """,
)
DIGITS = _class(0.15, "0 1 2 3 4 5 6 7 8 9 10") | _class(0.06, "11 12 13 14 15 16 17 18 19 20 25 30 40 50 60 100 000")

GERMAN = _class(0.3, "der die das und in zu den von mit für auf ist im dem nicht ein eine des sich") | _class(
    0.05,
    """
    aber alle allem allen aller alles als also am an andere anderen auch aus bei beim bereits bin bis bist da dabei dann
    damit daran darauf daraus darüber das dass davon dazu dein deine denn deren derer dessen deshalb dich dies diese
    diesem diesen dieser dieses dir doch dort du durch ebenso einem einen einer eines einmal er es etwa etwas euch euer
    gegen gewesen habe haben hat hatte hatten hier hin hinter ich ihm ihn ihnen ihr ihre ihrem ihren ihrer ihres immer
    ins ja jede jedem jeden jeder jedes jedoch jene jetzt kann kein keine keinen können könnte machen man mehr mein
    meine mich mir muss müssen nach neben noch nun nur ob oder ohne schon sehr sei sein seine seinem seinen seiner seit
    selbst sie sind so sollte sondern sonst sowie über um unter uns unser unsere vom vor war waren wegen weil weiter
    welche wenn wer werde werden wie wieder will wir wird wo wurde wurden während zum zur zwar zwei zwischen
    """,
)
FRENCH = _class(0.3, "le la les de des du et à en un une est que dans pour qui sur au par l d") | _class(
    0.05,
    """
    afin ai ainsi alors après as aucun aussi autre autres aux avait avant avec avoir ayant beaucoup bien c car ce ceci
    cela celle celles celui ces cet cette ceux chaque chez ci comme comment contre depuis dès deux dire doit donc dont
    elle elles encore entre es être eu eux faire fait faut fois font fut hors ici il ils j je jusqu jusque jour leur
    leurs lors lorsque lui m ma mais me même mêmes mes mon n ne ni non nos notre nous on ont ou où par parce pas peu
    peut peuvent plus plusieurs pourquoi près puis qu quand quel quelle quelles quelque quelques quels quoi s sa sans se
    sera ses si soit son sont sous suis t ta tandis te tes toi ton toujours tous tout toute toutes très trop tu va vers
    voir vos votre vous y étaient était été
    """,
)
SPANISH = _class(0.3, "el la los las de y en que del un una por con se para es su al lo no") | _class(
    0.05,
    """
    a ahora algo alguna algunas alguno algunos ante antes aquel aquella aquí así aunque bajo bien cada casi como contra
    cual cuales cuando cuanto cómo desde después donde dos durante e él ella ellas ellos entonces entre era eran es esa
    esas ese eso esos esta estaba estado están estar estas este esto estos está fue fueron ha había habían haber hace
    hacer hacia han hasta hay la le les luego más me mi mientras mis mismo mucha mucho muchos muy nada ni nos nosotros
    nuestra nuestro nunca o os otra otras otro otros pero poco porque primero puede pueden pues qué quien quienes quién
    sea según ser si sí sido siempre sin sino sobre solo sólo son sus también tan tanto te tener tengo ti tiene tienen
    toda todas todo todos tras tu tus un unas uno unos usted vez ya yo
    """,
)
