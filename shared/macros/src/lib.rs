//! The `#[skill]` attribute of `a2a-lambda`.

use proc_macro::TokenStream;

/// Makes a skill of a struct or an `async fn`.
#[proc_macro_attribute]
pub fn skill(_attributes: TokenStream, item: TokenStream) -> TokenStream {
    item
}
