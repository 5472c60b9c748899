//! What can be the method of a request.

pub fn is_method(text: &str) -> bool {
    http::Method::from_bytes(text.as_bytes()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_is_one_word_without_separators() {
        assert!(["GET", "PUT", "M-SEARCH", "own"].into_iter().all(is_method));
        assert!(!["", "GET /", "G(T", "a:b"].into_iter().any(is_method));
    }
}
