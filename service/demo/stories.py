"""What the newswire writes about: themes, each in chapters that follow one another, as words in the news do.

A chapter has headlines and sentences with gaps; what can stand in a gap is in GAPS. Every theme has words
that last (a refinery is a refinery), words of its chapter, and words that it shares with others: sunflowers give oil,
too, and rivers have banks.
"""

from typing import NamedTuple


class Chapter(NamedTuple):
    headlines: tuple[str, ...]
    sentences: tuple[str, ...]


GAPS: dict[str, tuple[str, ...]] = {
    "country": ("Norway", "Brazil", "Canada", "Nigeria", "Poland", "Vietnam", "Egypt", "Chile", "Japan", "Kenya"),
    "city": ("Rotterdam", "Houston", "Lagos", "Santos", "Gdansk", "Hamburg", "Mombasa", "Osaka", "Valparaiso", "Oslo"),
    "name": ("Larsen", "Okafor", "Silva", "Nowak", "Tran", "Haddad", "Moreno", "Tanaka", "Kimani", "Berg", "Weiss"),
    "day": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday"),
    "n": ("two", "three", "four", "five", "seven", "nine", "twelve", "twenty", "forty"),
    "percent": ("1.5", "2", "3.4", "4", "6.5", "8", "11", "15"),
    "month": ("March", "April", "June", "September", "October", "December"),
    "club": ("Rovers", "United", "Athletic", "Wanderers", "Rangers", "Dynamo", "Olympic"),
    "company": ("Norcap", "Delmar", "Westline", "Kobori", "Terrano", "Bluefield", "Maritima", "Solvent"),
}

# What any story may add; it says nothing of the theme.
FILLERS = (
    "Officials in {city} declined to comment on {day}.",
    "The news came late on {day}, after markets in {city} had closed.",
    "{name}, who has followed the matter for years, called it a turning point.",
    "A decision is expected before the end of {month}.",
    "Shares of {company} were little changed.",
    "The government of {country} said that it would look into the report.",
    "There have been {n} such cases since {month}, according to {company}.",
    "People in {city} have waited {n} weeks for an answer.",
)

THEMES: dict[str, tuple[Chapter, ...]] = {
    "oil": (
        Chapter(
            (
                "OPEC weighs deeper cut",
                "Crude climbs {percent} percent on quota talk",
                "{country} breaks ranks on oil output",
            ),
            (
                "Crude oil rose {percent} percent after OPEC ministers agreed on lower quotas.",
                "Output falls by {n} hundred thousand barrels a day from {month}, the cartel said.",
                "{country} pumps more crude than its quota allows, a delegate from {city} said.",
                "Traders at {company} expect Brent to test last year's high.",
                "Refinery margins in {city} narrowed as barrels became dearer.",
            ),
        ),
        Chapter(
            ("Blast halts pipeline near {city}", "Tankers queue off {city}", "Repairs to pipeline take {n} weeks"),
            (
                "An explosion has halted the pipeline that feeds the refinery at {city}.",
                "Tankers with Brent wait off {city} while the terminal is closed.",
                "{company}, which runs the pipeline, declared force majeure on loadings.",
                "Repair crews found sabotage at {n} pumping stations, {name} said.",
                "Petrol stations in {country} ran dry as the terminal stood still.",
            ),
        ),
        Chapter(
            ("Rig workers walk out in {country}", "Offshore strike enters week {n}", "{company} shuts platforms"),
            (
                "Offshore workers in {country} walked out over pay, and {n} platforms stand idle.",
                "{company} has flown crews off its rigs and shut the wells.",
                "The union of {name} wants {percent} percent more for shifts at sea.",
                "Drilling in the northern fields will not resume before {month}.",
                "Gas from the platforms, too, is missing at the refinery in {city}.",
            ),
        ),
    ),
    "grain": (
        Chapter(
            ("Wheat harvest in {country} falls short", "Drought cuts maize crop", "Farmers in {country} pray for rain"),
            (
                "Farmers in {country} expect a wheat harvest {percent} percent below last year's.",
                "Drought has withered the maize, and silos near {city} stand half empty.",
                "Sunflower oil rose in price as oilseed crushers ran short.",
                "{company} cut its estimate of the crop once more.",
                "Exports of grain through {city} fell by {percent} percent.",
            ),
        ),
        Chapter(
            ("Rust spreads in {country}'s fields", "Locusts cross into {country}", "Pest eats into barley"),
            (
                "A fungus, stem rust, has reached the barley fields of {country}.",
                "Locusts crossed the border on {day} and ate what the rust had left of the crop.",
                "Growers spray at night; seed that resists is sold out, {company} said.",
                "The ministry burns {n} hundred acres around {city}.",
                "Millers pay a premium for grain that is certified clean.",
            ),
        ),
        Chapter(
            ("Fertiliser bill squeezes growers", "{company} rations potash", "Sowing late in {country}"),
            (
                "Fertiliser costs {percent} percent more than in {month}, and growers sow less.",
                "{company} rations potash and ammonia to its oldest buyers.",
                "Soya takes the place of maize on fields near {city}, since it needs less nitrogen.",
                "Tractors stood still in {country} for want of diesel.",
                "Yields of the next crop will tell, {name} of the growers' league said.",
            ),
        ),
    ),
    "rates": (
        Chapter(
            ("Central bank lifts rate", "Inflation slows to {percent} percent", "{country} keeps rates on hold"),
            (
                "The central bank of {country} raised its interest rate by a quarter point.",
                "Inflation slowed to {percent} percent in {month}, less than economists had hoped.",
                "Governor {name} said that rates would stay high until prices were stable.",
                "Bond yields rose, and the currency gained against the dollar.",
                "Lenders such as {company} pass the rise on to mortgages.",
            ),
        ),
        Chapter(
            ("Run on lender {company}", "Deposits guaranteed in {country}", "{company} seeks a buyer"),
            (
                "Savers queued at branches of {company} after it wrote off {percent} percent of its loans.",
                "The central bank lent {company} cash overnight and guaranteed deposits.",
                "Regulators in {city} look for a buyer over the weekend, {name} said.",
                "Credit dried up between lenders, and money market funds lost savers.",
                "Capital rules will be tightened by {month}.",
            ),
        ),
        Chapter(
            ("{country} to issue digital currency", "Cash loses ground", "Payments fail at {company}"),
            (
                "{country} will issue a digital currency, the central bank said, with wallets for all.",
                "Cash makes up {percent} percent of payments, half of what it was.",
                "A ledger outage at {company} stopped payments for {n} hours.",
                "Governor {name} wants no interest on digital wallets.",
                "Shops in {city} test the coins until {month}.",
            ),
        ),
    ),
    "football": (
        Chapter(
            ("{club} win in extra time", "{club} held by {club}", "{name} scores {n} for {club}"),
            (
                "{club} beat {club} with a goal by {name} in extra time.",
                "The striker scored {n} goals before the break.",
                "A penalty in the last minute saved a point for {club}.",
                "The coach praised his defenders, and the goalkeeper above all.",
                "{club} stay top of the league, {n} points ahead.",
            ),
        ),
        Chapter(
            ("{club} sign {name}", "Record fee for {name}", "Transfer window: {club} wait"),
            (
                "{club} have signed {name} for a record fee.",
                "The midfielder passed his medical on {day} and wears the number nine.",
                "His agent had offered him to {n} clubs before the window closed.",
                "{club} loan two youngsters out to balance the wages.",
                "The contract runs until {month} and has a release clause.",
            ),
        ),
    ),
    "floods": (
        Chapter(
            ("River bursts banks at {city}", "Floods cut off {city}", "Thousands leave homes in {country}"),
            (
                "The river burst its banks at {city}, and {n} villages are under water.",
                "Rescuers in boats brought people from the roofs.",
                "It rained as much in {n} days as it does in a whole {month}.",
                "A dam above {city} is watched day and night.",
                "Roads and bridges in the south of {country} are closed.",
            ),
        ),
    ),
    "space": (
        Chapter(
            ("Rocket puts {n} satellites in orbit", "{company} probe nears comet", "Launch scrubbed in {country}"),
            (
                "A rocket of {company} has put {n} satellites into orbit.",
                "The probe will reach the comet in {month} and bring dust back to Earth.",
                "Engineers in {city} lost contact with the lander for {n} hours.",
                "The launch was put off on {day} because of winds.",
                "A telescope saw water in the air of a planet {n} light years away.",
            ),
        ),
    ),
    "courts": (
        Chapter(
            ("Court fines {company}", "Judge halts merger", "{name} appeals against sentence"),
            (
                "A court in {city} has fined {company} for fixing prices.",
                "The judge found that {name} had misled shareholders.",
                "Lawyers will appeal, they said on {day}.",
                "The merger with {company} may not go on before {month}.",
                "Witnesses told the jury of {n} meetings in {city}.",
            ),
        ),
    ),
    "shipping": (
        Chapter(
            ("Freight rates jump {percent} percent", "Dockers strike in {city}", "{company} orders {n} ships"),
            (
                "Freight rates for containers rose {percent} percent in a week.",
                "Dockers in {city} strike over shifts, and {n} vessels wait at anchor.",
                "{company} has ordered {n} carriers that burn methanol.",
                "Insurers charge more for passages past {country}.",
                "The canal lets fewer ships through while the water is low.",
            ),
        ),
    ),
}
