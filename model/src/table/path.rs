//! Paths into an item: an attribute, and steps into lists and maps.

use std::collections::BTreeMap;
use std::fmt;

use super::value::{Item, Value};
use crate::error::{Error, Result};

/// Where a part of an item lies.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path {
    /// The attribute of the item.
    pub attribute: String,
    /// The way from there; empty for the whole attribute.
    pub steps: Vec<Step>,
}

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// To the value with this name in a map.
    Name(String),
    /// To the element with this number in a list; the first one is zero.
    Index(usize),
}

/// The path to an attribute.
pub fn path(attribute: impl Into<String>) -> Path {
    Path { attribute: attribute.into(), steps: Vec::new() }
}

impl Path {
    /// The path to a value of the map that this path leads to.
    pub fn name(mut self, name: impl Into<String>) -> Path {
        self.steps.push(Step::Name(name.into()));
        self
    }

    /// The path to an element of the list that this path leads to.
    pub fn index(mut self, index: usize) -> Path {
        self.steps.push(Step::Index(index));
        self
    }

    /// What lies there.
    pub fn find<'a>(&self, item: &'a Item) -> Option<&'a Value> {
        self.steps.iter().try_fold(item.get(&self.attribute)?, |value, step| match (value, step) {
            (Value::Map(map), Step::Name(name)) => map.get(name),
            (Value::List(list), Step::Index(index)) => list.get(*index),
            _ => None,
        })
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.attribute)?;
        self.steps.iter().try_for_each(|step| match step {
            Step::Name(name) => write!(f, ".{name}"),
            Step::Index(index) => write!(f, "[{index}]"),
        })
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<&str> for Path {
    fn from(attribute: &str) -> Self {
        path(attribute)
    }
}

/// Paths of which none contains another and which agree on what is a list and what is a map.
#[derive(Clone, Debug, Default)]
pub(super) enum PathTree {
    /// No path leads here yet.
    #[default]
    Untouched,
    /// A path ends here.
    Whole,
    /// Paths lead on by names.
    Names(BTreeMap<String, PathTree>),
    /// Paths lead on by numbers.
    Indexes(BTreeMap<usize, PathTree>),
}

/// Paths that are compared with one another; more of them are faster in a tree.
const PATHS_FEW: usize = 8;

impl PathTree {
    /// Whether these paths go together; `what` says whose paths they are when they do not.
    pub fn check<'a>(paths: impl Iterator<Item = &'a Path> + Clone, what: &str) -> Result<()> {
        let is_apart = |(count, path): (usize, &Path)| {
            let others = || paths.clone().take(count);
            count < PATHS_FEW
                && path.steps.is_empty()
                && others().all(|other| other.attribute != path.attribute)
        };
        match paths.clone().enumerate().all(is_apart) {
            true => Ok(()),
            false => PathTree::of(paths, what).map(drop),
        }
    }

    /// The tree of these paths; `what` says whose paths they are when they do not go together.
    pub fn of<'a>(paths: impl IntoIterator<Item = &'a Path>, what: &str) -> Result<PathTree> {
        let mut tree = PathTree::Names(BTreeMap::new());
        for path in paths {
            tree.add(path)
                .map_err(|why| Error::Invalid(format!("{what} have paths that {why} at `{path}`")))?;
        }
        Ok(tree)
    }

    fn add(&mut self, path: &Path) -> std::result::Result<(), &'static str> {
        let mut tree = self;
        let attribute = Step::Name(path.attribute.clone());
        for step in std::iter::once(&attribute).chain(&path.steps) {
            if matches!(tree, PathTree::Untouched) {
                *tree = match step {
                    Step::Name(_) => PathTree::Names(BTreeMap::new()),
                    Step::Index(_) => PathTree::Indexes(BTreeMap::new()),
                };
            }
            tree = match (tree, step) {
                (PathTree::Names(names), Step::Name(name)) => names.entry(name.clone()).or_default(),
                (PathTree::Indexes(indexes), Step::Index(index)) => indexes.entry(*index).or_default(),
                (PathTree::Whole, _) => return Err("overlap"),
                _ => return Err("conflict"),
            };
        }
        match std::mem::replace(tree, PathTree::Whole) {
            PathTree::Untouched => Ok(()),
            _ => Err("overlap"),
        }
    }

    /// The parts of an item that the paths lead to. Elements of a list close up.
    pub fn pick(&self, item: &Item) -> Item {
        match self {
            PathTree::Names(names) => pick_names(names, item),
            _ => Item::new(),
        }
    }

    fn pick_value(&self, value: &Value) -> Option<Value> {
        match (self, value) {
            (PathTree::Whole, value) => Some(value.clone()),
            (PathTree::Names(names), Value::Map(map)) => {
                let picked = pick_names(names, map);
                (!picked.is_empty()).then_some(Value::Map(picked))
            }
            (PathTree::Indexes(indexes), Value::List(list)) => {
                let pick = |(index, tree): (&usize, &PathTree)| tree.pick_value(list.get(*index)?);
                let picked: Vec<_> = indexes.iter().filter_map(pick).collect();
                (!picked.is_empty()).then_some(Value::List(picked))
            }
            _ => None,
        }
    }
}

fn pick_names(names: &BTreeMap<String, PathTree>, map: &Item) -> Item {
    let pick = |(name, tree): (&String, &PathTree)| Some((name.clone(), tree.pick_value(map.get(name)?)?));
    names.iter().filter_map(pick).collect()
}
