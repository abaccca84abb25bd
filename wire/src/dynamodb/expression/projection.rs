//! Projections.

use anabranch_model::table::Projection;

use super::Expressions;
use super::cursor::Cursor;
use super::resolve::Resolver;
use super::token::Kind;
use crate::fault::Fault;

const PARAMETER: &str = "ProjectionExpression";

impl Expressions {
    /// The wanted parts of an item.
    pub(in crate::dynamodb) fn projection(&mut self, text: &str) -> Result<Projection, Fault> {
        let mut cursor = Cursor::new(PARAMETER, text)?;
        let mut raw = vec![cursor.path()?];
        while cursor.accept(Kind::Symbol(',')) {
            raw.push(cursor.path()?);
        }
        cursor.finish(|_| false, "a projection")?;
        let mut resolver = Resolver { parameter: PARAMETER, expressions: self };
        let paths = raw.iter().map(|path| resolver.path(path)).collect::<Result<Vec<_>, _>>()?;
        resolver.check_paths(&paths)?;
        Ok(Projection(paths))
    }
}
