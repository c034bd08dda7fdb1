//! [`Place`]: the path of a value in an object.

use std::fmt;

/// The path from the root of an object to a value. To save memory, only the paths of reported
/// values are formatted.
#[derive(Clone, Copy)]
pub(super) enum Place<'p> {
    Root,
    Field(&'p Place<'p>, &'p str),
    Element(&'p Place<'p>, usize),
}

impl<'p> Place<'p> {
    pub(super) fn field(&'p self, name: &'p str) -> Self {
        Self::Field(self, name)
    }

    pub(super) fn element(&'p self, index: usize) -> Self {
        Self::Element(self, index)
    }

    pub(super) fn is_root(&self) -> bool {
        matches!(self, Self::Root)
    }
}

/// Formats the path as `spec.containers[0].image`.
impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Field(Self::Root, name) => f.write_str(name),
            Self::Field(parent, name) => write!(f, "{parent}.{name}"),
            Self::Element(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}
