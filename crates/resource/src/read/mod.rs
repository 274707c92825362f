//! Reading rows: filters, lists, pages, nested sets.

pub mod answer;
pub mod answer_many;
pub mod emit;
pub mod filter;
pub mod filter_sql;
pub mod last_change;
pub mod list;
pub mod load;
pub mod nested;
pub mod page;
pub mod precondition;
pub mod refusals;
pub mod rows;
pub mod slice;
pub mod unchanged;
pub mod visible;
