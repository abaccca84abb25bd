//! Anything that can be asked of tables, drawn from a number: the same number is always the same step.

use std::time::Duration;

use anabranch_model::table::expression::{exists, if_missing, list_append, missing, size};
use anabranch_model::table::{
    Action, Alteration, ChangeView, Condition, Get, IndexOptions, IndexProjection, Item, ItemPage,
    KeyCondition, KeyKind, KeySchema, Number, Projection, Query, RangeCondition, Reading, Returning, Scan,
    TableOptions, TableStore, Token, Update, Value, Write, path,
};
use anabranch_model::{IndexName, Result, TableName};
use anabranch_sim::Rng;

use crate::table_world::{START, name};

/// More pages than any of these reads has.
const PAGES_MAX: usize = 100;

/// What is asked of both.
#[derive(Clone, Debug)]
pub enum Step {
    Create(TableName, TableOptions),
    Drop(TableName),
    Alter(TableName, Alteration),
    Write(TableName, Write),
    Batch(Vec<(TableName, Action)>),
    Transact(Vec<(TableName, Write)>, Option<Token>),
    Get(TableName, Get),
    BatchGet(Vec<(TableName, Get)>),
    TransactGet(Vec<(TableName, Get)>),
    /// All pages.
    Query(TableName, Box<Query>),
    /// All pages.
    Scan(TableName, Scan),
    /// Time passes, and everything is done that upkeep does.
    Advance(Duration),
    Upkeep,
    /// The process ends without a word.
    Reopen,
    /// The power fails when a call was looked at so many times.
    LosePower(Box<Step>, usize, u64),
}

/// What a store answers.
pub async fn ask(store: &dyn TableStore, step: &Step) -> Result<String> {
    fn shown(answer: impl std::fmt::Debug) -> String {
        format!("{answer:?}")
    }
    match step.clone() {
        Step::Create(table, options) => store.create_table(&table, options).await.map(shown),
        Step::Drop(table) => store.delete_table(&table).await.map(shown),
        Step::Alter(table, alteration) => store.alter(&table, alteration).await.map(shown),
        Step::Write(table, write) => store.write(&table, write).await.map(shown),
        Step::Batch(writes) => store.batch_write(writes).await.map(shown),
        Step::Transact(writes, token) => store.transact_write(writes, token).await.map(shown),
        Step::Get(table, get) => store.get(&table, get).await.map(shown),
        Step::BatchGet(gets) => store.batch_get(gets).await.map(shown),
        Step::TransactGet(gets) => store.transact_get(gets).await.map(shown),
        Step::Query(table, query) => {
            let page = async |start: Option<Item>| {
                let start = start.or_else(|| query.reading.start.clone());
                store.query(&table, query.clone().start(start)).await
            };
            pages(page).await.map(shown)
        }
        Step::Scan(table, scan) => {
            let page = async |start: Option<Item>| {
                let start = start.or_else(|| scan.reading.start.clone());
                store.scan(&table, scan.clone().start(start)).await
            };
            pages(page).await.map(shown)
        }
        Step::Advance(_) | Step::Upkeep | Step::Reopen | Step::LosePower(..) => Ok(String::new()),
    }
}

async fn pages(page: impl AsyncFn(Option<Item>) -> Result<ItemPage>) -> Result<Vec<ItemPage>> {
    let mut pages = vec![page(None).await?];
    while let Some(last) = pages.last().and_then(|page| page.last.clone()) {
        assert!(pages.len() < PAGES_MAX, "pages do not end");
        pages.push(page(Some(last)).await?);
    }
    Ok(pages)
}

/// The step of a number.
pub fn step(number: u64) -> Step {
    let dice = &mut Dice(Rng::new(number));
    match dice.below(60) {
        0..=4 => {
            let table = dice.table();
            let options = dice.options(&table);
            Step::Create(table, options)
        }
        5 => Step::Drop(dice.table()),
        6..=9 => Step::Alter(dice.table(), dice.alteration()),
        10..=12 => Step::Batch((0..=dice.below(5)).map(|_| dice.action()).collect()),
        13..=17 => dice.transaction(),
        18 => {
            let (table, get) = dice.get();
            Step::Get(table, get)
        }
        19 => Step::BatchGet((0..=dice.below(5)).map(|_| dice.get()).collect()),
        20 => Step::TransactGet((0..=dice.below(4)).map(|_| dice.get()).collect()),
        21..=27 => {
            let table = dice.table();
            let query = dice.query(&table);
            Step::Query(table, Box::new(query))
        }
        28..=31 => {
            let table = dice.table();
            let scan = dice.scan(&table);
            Step::Scan(table, scan)
        }
        32 | 33 => {
            Step::Advance(Duration::from_millis([1, 40_000, 300_000, 700_000, 50_000_000][dice.below(5)]))
        }
        34 | 35 => Step::Upkeep,
        36 => Step::Reopen,
        37 | 38 => {
            let during = match step(dice.0.next_u64()) {
                Step::LosePower(during, ..) => during,
                // Whether a token is remembered cannot be seen where the transaction makes no difference.
                Step::Transact(writes, _) => Box::new(Step::Transact(writes, None)),
                during => Box::new(during),
            };
            Step::LosePower(during, dice.below(4), dice.0.next_u64())
        }
        _ => {
            let table = dice.table();
            let write = dice.write(&table);
            Step::Write(table, write)
        }
    }
}

struct Dice(Rng);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0.below(n as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())].clone()
    }

    fn table(&mut self) -> TableName {
        name(self.of(&["grouped", "grouped", "single"]))
    }

    fn options(&mut self, table: &TableName) -> TableOptions {
        let grouped = table.as_str() == "grouped";
        let key = match grouped {
            true => KeySchema::hash("group", KeyKind::Text).and_range("at", KeyKind::Number),
            false => KeySchema::hash("id", KeyKind::Binary),
        };
        let mut options = TableOptions::new(key);
        if grouped && !self.one_in(3) {
            let by_size = KeySchema::hash("group", KeyKind::Text).and_range("size", KeyKind::Number);
            options = options
                .with_index(IndexOptions::local(index("by-size"), by_size).showing(IndexProjection::Keys));
        }
        if self.one_in(2) {
            options = options.with_index(by_color());
        }
        if !self.one_in(3) {
            options = options.with_time_to_live("until");
        }
        match self.view() {
            Some(view) => options.with_changes(view),
            None => options,
        }
    }

    fn view(&mut self) -> Option<ChangeView> {
        self.of(&[
            None,
            Some(ChangeView::Keys),
            Some(ChangeView::New),
            Some(ChangeView::Old),
            Some(ChangeView::Both),
        ])
    }

    fn alteration(&mut self) -> Alteration {
        match self.below(8) {
            0 | 1 => Alteration::AddIndex(by_color()),
            2 | 3 => Alteration::AddIndex(IndexOptions::global(
                index("by-n"),
                KeySchema::hash("n", KeyKind::Number),
            )),
            4 => Alteration::DropIndex(self.index()),
            5 => Alteration::TimeToLive(self.of(&[None, Some("until".to_string())])),
            _ => Alteration::Changes(self.view()),
        }
    }

    fn index(&mut self) -> IndexName {
        index(self.of(&["by-color", "by-color", "by-n", "by-size"]))
    }

    fn key(&mut self, table: &TableName) -> Item {
        if table.as_str() == "single" {
            return Item::new().with("id", self.of(&[&b"\0"[..], b"\0\xff", b"\x01", b"x"]));
        }
        let at = self.of(&["-1.5", "0", "1", "2", "10", "1E20"]);
        Item::new().with("group", self.of(&["a", "b", "c"])).with("at", Value::number(at).expect("a number"))
    }

    fn color(&mut self) -> Value {
        self.of(&["red", "red", "blue", ""]).into()
    }

    /// When an item expires: soon, late, or never, for it is not a time.
    fn until(&mut self) -> Value {
        let seconds = START.as_millis() / 1000 + 200 * self.0.below(4);
        self.of(&[
            Value::from(seconds),
            Value::from(seconds),
            Value::from(seconds + 200_000),
            Value::from("soon"),
        ])
    }

    fn item(&mut self, table: &TableName) -> Item {
        let mut item = self.key(table);
        if !self.one_in(3) {
            // An empty text, or a text where a number belongs, cannot be in an index.
            item.insert("color", self.color());
        }
        if !self.one_in(3) {
            item.insert("size", Value::from(self.0.below(4)));
        }
        if !self.one_in(3) {
            item.insert("n", Value::Number(Number::from(self.0.below(5))));
        }
        if self.one_in(3) {
            item.insert("until", self.until());
        }
        if self.one_in(4) {
            item.insert("tags", Value::text_set(["x", self.of(&["y", "z"])]).expect("a set"));
        }
        if self.one_in(4) {
            item.insert("list", vec![Value::Null, Item::new().with("deep", self.color()).into()]);
        }
        if self.one_in(4) {
            item.insert("text", "x".repeat(self.below(3_000)));
        }
        item
    }

    fn condition(&mut self) -> Condition {
        match self.below(7) {
            0 => exists("color"),
            1 => missing("size").or(path("n").above(2)),
            2 => path("n").between(1, 3).negated(),
            3 => path("tags").contains("y"),
            4 => size("text").above(100).or(missing("text")),
            5 => path("list").index(1).name("deep").equals("red"),
            _ => path("color").begins_with("r").and(exists("n")),
        }
    }

    fn update(&mut self) -> Update {
        let update = Update::new();
        match self.below(9) {
            0 => update.add("n", 1).remove("color"),
            1 => update.set("size", if_missing("n", 0)),
            2 => update.set("color", self.color()).remove("size"),
            3 => update.set("until", self.until()),
            4 => update.remove("until").remove("text"),
            5 => update.add("tags", Value::text_set(["z"]).expect("a set")),
            6 => update.delete("tags", Value::text_set(["x", "z"]).expect("a set")),
            7 => update.set(
                "list",
                list_append(if_missing("list", Value::List(vec![])), Value::List(vec![true.into()])),
            ),
            _ => update.set(path("list").index(1).name("deep"), self.color()).set("n", path("n").plus(5)),
        }
    }

    fn write(&mut self, table: &TableName) -> Write {
        let write = match self.below(8) {
            0..=3 => Write::put(self.item(table)),
            4 => Write::delete(self.key(table)),
            _ => Write::update(self.key(table), self.update()),
        };
        let write = if self.one_in(3) { write.when(self.condition()) } else { write };
        let returning = match &write.action {
            Action::Update(..) => self.of(&[
                Returning::Nothing,
                Returning::Old,
                Returning::New,
                Returning::UpdatedOld,
                Returning::UpdatedNew,
            ]),
            _ => self.of(&[Returning::Nothing, Returning::Old]),
        };
        let write = write.returning(returning);
        if self.one_in(2) { write.showing_item() } else { write }
    }

    fn action(&mut self) -> (TableName, Action) {
        let table = self.table();
        let action = match self.one_in(3) {
            true => Action::Delete(self.key(&table)),
            false => Action::Put(self.item(&table)),
        };
        (table, action)
    }

    /// One with a token is one of few, so that it comes again.
    fn transaction(&mut self) -> Step {
        let token = self.one_in(2).then(|| self.of(&["one", "two"]));
        let mut known = match token {
            Some(_) => Dice(Rng::new(self.0.below(2))),
            None => Dice(self.0.fork()),
        };
        let part = |dice: &mut Dice| {
            let table = dice.table();
            let write = match dice.below(5) {
                0 => Write::check_that(dice.key(&table), dice.condition()),
                _ => dice.write(&table).returning(Returning::Nothing),
            };
            (table, write)
        };
        let writes = (0..=known.below(4)).map(|_| part(&mut known)).collect();
        Step::Transact(writes, token.map(|token| Token::new(token).expect("a token")))
    }

    fn projection(&mut self) -> Option<Projection> {
        let deep = || Projection::of([path("list").index(1).name("deep"), path("n")]);
        self.of(&[
            None,
            None,
            Some(Projection::of(["n", "color"])),
            Some(deep()),
            Some(Projection::of(["group", "at"])),
        ])
    }

    fn get(&mut self) -> (TableName, Get) {
        let table = self.table();
        let get = Get::new(self.key(&table));
        let get = match self.projection() {
            Some(projection) => get.only(projection),
            None => get,
        };
        (table, get)
    }

    fn query(&mut self, table: &TableName) -> Query {
        let index = self.one_in(2).then(|| self.index());
        let key = match index.as_ref().map(IndexName::as_str) {
            Some("by-color") => KeyCondition::of("color", self.color()),
            Some("by-n") => KeyCondition::of("n", Value::from(self.0.below(5))),
            _ if table.as_str() == "single" => KeyCondition::of("id", &b"\0\xff"[..]),
            _ => KeyCondition::of("group", self.of(&["a", "b", "c"])),
        };
        let range = match index.as_ref().map(IndexName::as_str) {
            Some(_) => "size",
            None => "at",
        };
        let key = match self.below(6) {
            0 => key.and(range, RangeCondition::above(0)),
            1 => key.and(range, RangeCondition::at_most(2)),
            2 => key.and(range, RangeCondition::between(1, 10)),
            _ => key,
        };
        let mut query = Query::new(key);
        query.backward = self.one_in(2);
        query.reading.index = index;
        self.reading(table, &mut query.reading);
        query
    }

    fn scan(&mut self, table: &TableName) -> Scan {
        let mut scan = Scan::new();
        if self.one_in(2) {
            let of = 1 + self.below(3) as u32;
            scan = scan.segment(self.below(of as usize) as u32, of);
        }
        scan.reading.index = self.one_in(2).then(|| self.index());
        self.reading(table, &mut scan.reading);
        scan
    }

    fn reading(&mut self, table: &TableName, reading: &mut Reading) {
        reading.consistent = self.one_in(4);
        reading.limit = (!self.one_in(3)).then(|| 1 + self.below(4));
        reading.filter = self.one_in(3).then(|| self.condition());
        reading.projection = self.projection();
        reading.count_only = self.one_in(6);
        reading.start = self.one_in(6).then(|| self.key(table));
        reading.whole = self.one_in(4);
    }
}

fn index(text: &str) -> IndexName {
    IndexName::new(text).expect("a good name")
}

fn by_color() -> IndexOptions {
    let key = KeySchema::hash("color", KeyKind::Text).and_range("size", KeyKind::Number);
    IndexOptions::global(index("by-color"), key).showing(IndexProjection::Include(["n".to_string()].into()))
}
