//! The room as a whole, as an author meets it.

mod attribute;
