//! Tests of whole repositories, over objects in a map.

mod bench;
mod export;
mod history;
mod repository;
mod skills;
