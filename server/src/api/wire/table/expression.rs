//! Conditions, updates and paths: each part under its name, what it is made of in an array.

use anabranch_model::table::expression::{Comparison, Operand, SetOperand, SetValue};
use anabranch_model::table::{
    Condition, KeyCondition, Kind, Path, Projection, RangeCondition, Step, Update, path,
};
use serde::{Deserialize, Serialize};

use super::mirror::{Mirror, mirrored};
use super::value::ValueBody;

/// A path as an array: the attribute, then names and numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<StepBody>", into = "Vec<StepBody>")]
pub struct PathBody(pub Path);

/// A step of a path: a name or a number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
#[allow(missing_docs, reason = "the variants are those of the model's step")]
pub enum StepBody {
    Index(usize),
    Name(String),
}

impl TryFrom<Vec<StepBody>> for PathBody {
    type Error = &'static str;

    fn try_from(steps: Vec<StepBody>) -> Result<Self, Self::Error> {
        let mut steps = steps.into_iter();
        let Some(StepBody::Name(attribute)) = steps.next() else {
            return Err("a path begins with the name of an attribute");
        };
        Ok(PathBody(steps.fold(path(attribute), |path, step| match step {
            StepBody::Index(index) => path.index(index),
            StepBody::Name(name) => path.name(name),
        })))
    }
}

impl From<PathBody> for Vec<StepBody> {
    fn from(PathBody(path): PathBody) -> Self {
        let steps = path.steps.into_iter().map(|step| match step {
            Step::Index(index) => StepBody::Index(index),
            Step::Name(name) => StepBody::Name(name),
        });
        std::iter::once(StepBody::Name(path.attribute)).chain(steps).collect()
    }
}

impl Mirror<Path> for PathBody {
    fn of(model: Path) -> Self {
        PathBody(model)
    }

    fn back(self) -> Path {
        self.0
    }
}

/// The paths of a projection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProjectionBody(pub Vec<PathBody>);

impl Mirror<Projection> for ProjectionBody {
    fn of(model: Projection) -> Self {
        ProjectionBody(Mirror::of(model.0))
    }

    fn back(self) -> Projection {
        Projection(self.0.back())
    }
}

mirrored! {
    /// What a value is, under the letters by which a value of it is written.
    enum KindBody = Kind {
        #[serde(rename = "S")]
        Text,
        #[serde(rename = "N")]
        Number,
        #[serde(rename = "B")]
        Binary,
        #[serde(rename = "BOOL")]
        Bool,
        #[serde(rename = "NULL")]
        Null,
        #[serde(rename = "L")]
        List,
        #[serde(rename = "M")]
        Map,
        #[serde(rename = "SS")]
        TextSet,
        #[serde(rename = "NS")]
        NumberSet,
        #[serde(rename = "BS")]
        BinarySet,
    }
}

mirrored! {
    /// How two values are compared.
    enum ComparisonBody = Comparison { Equal, NotEqual, Below, AtMost, Above, AtLeast, }
}

mirrored! {
    /// What a condition looks at.
    enum OperandBody = Operand { Path(path: PathBody), Value(value: ValueBody), Size(path: PathBody), }
}

mirrored! {
    /// Something that an item fulfils or not.
    enum ConditionBody = Condition {
        Compare(one: OperandBody, how: ComparisonBody, other: OperandBody),
        Between(one: OperandBody, lower: OperandBody, upper: OperandBody),
        In(one: OperandBody, others: Vec<OperandBody>),
        Exists(path: PathBody),
        Missing(path: PathBody),
        HasKind(path: PathBody, kind: KindBody),
        BeginsWith(one: OperandBody, start: OperandBody),
        Contains(one: OperandBody, part: OperandBody),
        And(all: Vec<ConditionBody>),
        Or(any: Vec<ConditionBody>),
        Not(condition: Box<ConditionBody>),
    }
}

mirrored! {
    /// Which items a query looks at.
    struct KeyConditionBody = KeyCondition {
        attribute: String,
        value: ValueBody,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        range: Option<(String, RangeConditionBody)>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        others: Vec<(String, ValueBody)>,
    }
}

mirrored! {
    /// What holds for a range value.
    enum RangeConditionBody = RangeCondition {
        Compare(how: ComparisonBody, value: ValueBody),
        Between(lower: ValueBody, upper: ValueBody),
        BeginsWith(start: ValueBody),
    }
}

mirrored! {
    /// Changes to the parts of an item.
    struct UpdateBody = Update {
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        set: Vec<(PathBody, SetValueBody)>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        remove: Vec<PathBody>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        add: Vec<(PathBody, ValueBody)>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        delete: Vec<(PathBody, ValueBody)>,
    }
}

mirrored! {
    /// What a path is set to.
    enum SetValueBody = SetValue {
        Operand(operand: SetOperandBody),
        Plus(one: SetOperandBody, other: SetOperandBody),
        Minus(one: SetOperandBody, other: SetOperandBody),
    }
}

mirrored! {
    /// Part of what a path is set to.
    enum SetOperandBody = SetOperand {
        Path(path: PathBody),
        Value(value: ValueBody),
        IfMissing(path: PathBody, otherwise: Box<SetOperandBody>),
        ListAppend(one: Box<SetOperandBody>, other: Box<SetOperandBody>),
    }
}
