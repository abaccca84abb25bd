//! How tables and indexes are described, in calls as in answers.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_model::limits::INDEX_INCLUDED_MAX;
use anabranch_model::table::{
    ChangeView, IndexOptions, IndexProjection, IndexScope, KeyKind, KeySchema, TableOptions,
};
use serde::{Deserialize, Serialize};

use super::attribute::INVALID;
use super::key_schema::{Element, PARTS_MAX, check_elements, global_key_schema, key_schema};
use super::names::{check_name, index_name};
use super::throughput::{OnDemand, Warm};
use crate::fault::Fault;
use crate::list::{ENTRIES_MAX, some_bounded};
use crate::validation::Validation;

const VIEWS: [(&str, ChangeView); 4] = [
    ("NEW_IMAGE", ChangeView::New),
    ("OLD_IMAGE", ChangeView::Old),
    ("NEW_AND_OLD_IMAGES", ChangeView::Both),
    ("KEYS_ONLY", ChangeView::Keys),
];

/// The kind of an attribute that is part of a key.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename = "AttributeDefinition", rename_all = "PascalCase", default)]
pub(super) struct Definition {
    attribute_name: Option<String>,
    attribute_type: Option<String>,
}

/// What an index shows.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename = "Projection", rename_all = "PascalCase", default)]
pub(super) struct ProjectionBody {
    projection_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    non_key_attributes: Option<Vec<String>>,
}

/// An index that is asked for.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename = "GlobalSecondaryIndex", rename_all = "PascalCase", default)]
pub(super) struct IndexBody {
    index_name: Option<String>,
    #[serde(default, deserialize_with = "some_bounded::<_, _, { ENTRIES_MAX }>")]
    key_schema: Option<Vec<Element>>,
    projection: Option<ProjectionBody>,
    provisioned_throughput: Option<ThroughputBody>,
    on_demand_throughput: Option<OnDemand>,
    warm_throughput: Option<Warm>,
}

/// Capacity that is asked for.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(rename = "ProvisionedThroughput", rename_all = "PascalCase", default)]
pub(super) struct ThroughputBody {
    read_capacity_units: Option<i64>,
    write_capacity_units: Option<i64>,
}

/// Capacity that was ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Throughput {
    pub(super) read_capacity_units: i64,
    pub(super) write_capacity_units: i64,
}

/// Most units that can be ordered.
const CAPACITY_UNITS_MAX: i64 = 1_000_000_000_000;

impl ThroughputBody {
    /// Capacity is ordered in whole units.
    pub(super) fn check(&self, validation: &mut Validation, field: &str) {
        let units = [
            ("writeCapacityUnits", self.write_capacity_units),
            ("readCapacityUnits", self.read_capacity_units),
        ];
        for (member, units) in units {
            let field = format!("{field}.{member}");
            validation.required(&field, &units).range(&field, units, 1..=i64::MAX);
        }
    }

    /// What is ordered. Both units have been found to be there.
    pub(super) fn ordered(&self) -> Throughput {
        Throughput {
            read_capacity_units: self.read_capacity_units.unwrap_or_default(),
            write_capacity_units: self.write_capacity_units.unwrap_or_default(),
        }
    }
}

impl Throughput {
    /// Whether so much can be ordered for a table.
    pub(super) fn check_bounds(&self) -> Result<(), Fault> {
        let units = [
            ("ReadCapacityUnits", self.read_capacity_units),
            ("WriteCapacityUnits", self.write_capacity_units),
        ];
        match units.iter().find(|(_, units)| *units > CAPACITY_UNITS_MAX) {
            Some((name, units)) => {
                Err(Fault::validation(format!("Given value {units} for {name} is out of bounds")))
            }
            None => Ok(()),
        }
    }
}

/// Whether changes are written down.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct StreamSpecification {
    pub(super) stream_enabled: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stream_view_type: Option<String>,
}

/// The kinds of the attributes of keys, by name.
pub(super) type Kinds = BTreeMap<String, KeyKind>;

pub(super) fn invalid(why: impl std::fmt::Display) -> Fault {
    Fault::validation(format!("{INVALID} {why}"))
}

/// Checks the shape of definitions before what they say.
pub(super) fn check_definitions(validation: &mut Validation, definitions: &[Definition]) {
    for (at, definition) in definitions.iter().enumerate() {
        let field = |member: &str| format!("attributeDefinitions.{}.member.{member}", at + 1);
        validation.required(&field("attributeName"), &definition.attribute_name);
        validation.required(&field("attributeType"), &definition.attribute_type);
        validation.length(&field("attributeName"), definition.attribute_name.as_deref(), 1..=255);
        validation.one_of(&field("attributeType"), definition.attribute_type.as_deref(), &["B", "N", "S"]);
    }
}

/// The kinds that a call defines.
pub(super) fn kinds(definitions: &[Definition]) -> Result<Kinds, Fault> {
    let mut kinds = Kinds::new();
    for Definition { attribute_name, attribute_type } in definitions {
        let kind = match attribute_type.as_deref() {
            Some("N") => KeyKind::Number,
            Some("B") => KeyKind::Binary,
            _ => KeyKind::Text,
        };
        let name = attribute_name.clone().unwrap_or_default();
        if kinds.insert(name.clone(), kind).is_some() {
            return Err(invalid(format_args!("Duplicate AttributeName in AttributeDefinitions: {name}")));
        }
    }
    Ok(kinds)
}

impl IndexBody {
    /// Checks the shape of an index before what it says.
    pub(super) fn check(&self, validation: &mut Validation, field: &str, scope: IndexScope) {
        let member = |member: &str| format!("{field}.{member}");
        let parts_max = if scope == IndexScope::Local { PARTS_MAX } else { usize::MAX };
        validation.required(&member("indexName"), &self.index_name);
        check_name(validation, &member("indexName"), self.index_name.as_deref());
        check_elements(validation, &member("keySchema"), &self.key_schema, parts_max);
        validation.required(&member("projection"), &self.projection);
        if let Some(projection) = &self.projection {
            projection.check(validation, &member("projection"));
        }
        if let Some(throughput) = &self.provisioned_throughput {
            throughput.check(validation, &member("provisionedThroughput"));
        }
    }

    /// What it is called.
    pub(super) fn name(&self) -> &str {
        self.index_name.as_deref().unwrap_or_default()
    }

    /// What was ordered for the index, if anything.
    pub(super) fn throughput(&self) -> Option<(String, Throughput)> {
        Some((self.index_name.clone()?, self.provisioned_throughput?.ordered()))
    }

    /// The limits that are asked for, if any.
    pub(super) fn on_demand(&self) -> Option<OnDemand> {
        self.on_demand_throughput
    }

    /// What is to be kept ready, if anything.
    pub(super) fn warm(&self) -> Option<Warm> {
        self.warm_throughput
    }

    /// The index: a local one if it shares the hash attribute of this key of a table.
    pub(super) fn options(&self, kinds: &Kinds, local_to: Option<&KeySchema>) -> Result<IndexOptions, Fault> {
        let name = self.name();
        let elements = self.key_schema.as_deref().unwrap_or_default();
        let read = if local_to.is_some() { key_schema } else { global_key_schema };
        let key = read(elements, kinds)?;
        if let Some(table) = local_to {
            if key.range.is_none() {
                return Err(invalid(format_args!(
                    "Index KeySchema does not have a range key for index: {name}"
                )));
            }
            if key.hash.name != table.hash.name {
                return Err(invalid(format_args!(
                    "Index KeySchema does not have the same leading hash key as table KeySchema for index: {name}. \
                     index hash key: {}, table hash key: {}",
                    key.hash.name, table.hash.name
                )));
            }
        }
        let projection = self.projection.clone().unwrap_or_default().projection()?;
        let scope = if local_to.is_some() { IndexScope::Local } else { IndexScope::Global };
        Ok(IndexOptions { name: index_name(name)?, scope, key, projection })
    }
}

impl ProjectionBody {
    fn check(&self, validation: &mut Validation, field: &str) {
        let kinds = &["ALL", "INCLUDE", "KEYS_ONLY"];
        validation.one_of(&format!("{field}.projectionType"), self.projection_type.as_deref(), kinds);
        let Some(names) = &self.non_key_attributes else { return };
        let field = format!("{field}.nonKeyAttributes");
        validation.size(&field, "[]", names.len(), 1..=usize::MAX);
        for (at, name) in names.iter().enumerate() {
            validation.length(&format!("{field}.{}.member", at + 1), Some(name), 1..=255);
        }
    }

    fn projection(self) -> Result<IndexProjection, Fault> {
        let attributes = self.non_key_attributes;
        match (self.projection_type.as_deref(), attributes) {
            (Some("INCLUDE"), Some(names)) if !names.is_empty() => {
                if names.len() > INDEX_INCLUDED_MAX {
                    return Err(invalid("Too many NonKeyAttributes in the projection"));
                }
                let mut distinct = BTreeSet::new();
                for name in names {
                    if distinct.contains(&name) {
                        return Err(invalid(format_args!("Duplicate value in NonKeyAttributes: {name}")));
                    }
                    distinct.insert(name);
                }
                Ok(IndexProjection::Include(distinct))
            }
            (Some("INCLUDE"), _) => {
                Err(invalid("ProjectionType is INCLUDE, but NonKeyAttributes is not specified"))
            }
            (Some(kind @ ("ALL" | "KEYS_ONLY")), Some(_)) => {
                Err(invalid(format_args!("ProjectionType is {kind}, but NonKeyAttributes is specified")))
            }
            (Some("ALL"), None) => Ok(IndexProjection::All),
            (Some("KEYS_ONLY"), None) => Ok(IndexProjection::Keys),
            _ => Err(invalid("Unknown ProjectionType: null")),
        }
    }
}

impl StreamSpecification {
    /// What is written down, if anything.
    pub(super) fn view(&self) -> Result<Option<ChangeView>, Fault> {
        let names = VIEWS.map(|(name, _)| name);
        let field = "streamSpecification.streamViewType";
        Validation::default().one_of(field, self.stream_view_type.as_deref(), &names).done()?;
        let view = VIEWS.iter().find(|(name, _)| Some(*name) == self.stream_view_type.as_deref());
        match (self.stream_enabled.unwrap_or(false), view) {
            (true, Some((_, view))) => Ok(Some(*view)),
            (true, None) => {
                Err(invalid("StreamSpecification.StreamViewType must be specified if StreamEnabled is true"))
            }
            (false, Some(_)) => Err(invalid(
                "StreamSpecification.StreamViewType must not be specified if StreamEnabled is false",
            )),
            (false, None) => Ok(None),
        }
    }

    /// The specification of a table whose changes are written down so.
    pub(super) fn of(view: ChangeView) -> Self {
        StreamSpecification { stream_enabled: Some(true), stream_view_type: Some(view_name(view).to_owned()) }
    }
}

/// What is written down, by its name.
pub(crate) fn view_name(view: ChangeView) -> &'static str {
    VIEWS.iter().find(|(_, other)| *other == view).map_or("KEYS_ONLY", |(name, _)| name)
}

/// The attributes of all keys of a table, as an answer shows them.
pub(super) fn definitions(options: &TableOptions) -> Vec<Definition> {
    let keys = std::iter::once(&options.key).chain(options.indexes.iter().map(|index| &index.key));
    let kinds: BTreeMap<_, _> =
        keys.flat_map(KeySchema::attributes).map(|part| (part.name.as_str(), part.kind)).collect();
    let definition = |(name, kind): (&str, KeyKind)| Definition {
        attribute_name: Some(name.to_owned()),
        attribute_type: Some(super::attribute::type_name(kind.kind()).to_owned()),
    };
    kinds.into_iter().map(definition).collect()
}

/// What an index shows, as an answer says it.
pub(super) fn projection_body(projection: &IndexProjection) -> ProjectionBody {
    let (kind, names) = match projection {
        IndexProjection::All => ("ALL", None),
        IndexProjection::Keys => ("KEYS_ONLY", None),
        IndexProjection::Include(names) => ("INCLUDE", Some(names.iter().cloned().collect())),
    };
    ProjectionBody { projection_type: Some(kind.to_owned()), non_key_attributes: names }
}
