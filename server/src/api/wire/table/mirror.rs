//! The way from a type of the model to the type of the wire that mirrors it, and back.

use std::collections::BTreeSet;

use anabranch_model::Timestamp;
use serde::{Deserialize, Serialize};

use super::super::super::text::Text;

/// A type of the wire that mirrors a type of the model. Both ways always succeed: what can be wrong is noticed while the
/// JSON is read, or by the store.
pub trait Mirror<M>: Sized {
    /// The mirror of a value of the model.
    fn of(model: M) -> Self;
    /// The value of the model.
    fn back(self) -> M;
}

macro_rules! same {
    ($($type:ty),+) => {
        $(impl Mirror<$type> for $type {
            fn of(model: $type) -> Self {
                model
            }

            fn back(self) -> $type {
                self
            }
        })+
    };
}

same!(bool, u32, u64, usize, String, BTreeSet<String>);

impl<T> Mirror<T> for Text<T> {
    fn of(model: T) -> Self {
        Text(model)
    }

    fn back(self) -> T {
        self.0
    }
}

impl<M, B: Mirror<M>> Mirror<Box<M>> for Box<B> {
    fn of(model: Box<M>) -> Self {
        Box::new(B::of(*model))
    }

    fn back(self) -> Box<M> {
        Box::new((*self).back())
    }
}

impl<M, B: Mirror<M>> Mirror<Option<M>> for Option<B> {
    fn of(model: Option<M>) -> Self {
        model.map(B::of)
    }

    fn back(self) -> Option<M> {
        self.map(B::back)
    }
}

impl<M, B: Mirror<M>> Mirror<Vec<M>> for Vec<B> {
    fn of(model: Vec<M>) -> Self {
        model.into_iter().map(B::of).collect()
    }

    fn back(self) -> Vec<M> {
        self.into_iter().map(B::back).collect()
    }
}

impl<M, N, B: Mirror<M>, C: Mirror<N>> Mirror<(M, N)> for (B, C) {
    fn of((one, other): (M, N)) -> Self {
        (B::of(one), C::of(other))
    }

    fn back(self) -> (M, N) {
        (self.0.back(), self.1.back())
    }
}

/// A moment in milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Millis(pub u64);

impl Mirror<Timestamp> for Millis {
    fn of(model: Timestamp) -> Self {
        Millis(model.as_millis())
    }

    fn back(self) -> Timestamp {
        Timestamp::from_millis(self.0)
    }
}

/// Defines a type of the wire with the fields or variants of a type of the model.
macro_rules! mirrored {
    ($(#[$meta:meta])* struct $body:ident = $model:ident {
        $($(#[$on_field:meta])* $field:ident: $type:ty,)+
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        #[allow(missing_docs, reason = "the fields are those of the model's type")]
        pub struct $body {
            $($(#[$on_field])* pub $field: $type,)+
        }

        impl $crate::api::wire::Mirror<$model> for $body {
            fn of($model { $($field),+ }: $model) -> Self {
                $body { $($field: $crate::api::wire::Mirror::of($field),)+ }
            }

            fn back(self) -> $model {
                $model { $($field: $crate::api::wire::Mirror::back(self.$field),)+ }
            }
        }
    };
    ($(#[$meta:meta])* enum $body:ident = $model:ident {
        $($(#[$on_variant:meta])* $variant:ident $(($($part:ident: $type:ty),+))?,)+
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[allow(missing_docs, reason = "the variants are those of the model's type")]
        pub enum $body {
            $($(#[$on_variant])* $variant $(($($type),+))?,)+
        }

        impl $crate::api::wire::Mirror<$model> for $body {
            fn of(model: $model) -> Self {
                match model {
                    $($model::$variant $(($($part),+))? => {
                        $body::$variant $(($($crate::api::wire::Mirror::of($part)),+))?
                    })+
                }
            }

            fn back(self) -> $model {
                match self {
                    $($body::$variant $(($($part),+))? => {
                        $model::$variant $(($($crate::api::wire::Mirror::back($part)),+))?
                    })+
                }
            }
        }
    };
}

pub(super) use mirrored;
