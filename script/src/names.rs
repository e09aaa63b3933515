//! Suggestions for names that do not exist.

/// `did you mean …?`, or the list of known names.
pub(super) fn did_you_mean<'a>(name: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> String {
    let distance = |known: &str| strsim::damerau_levenshtein(&name.to_lowercase(), &known.to_lowercase());
    let near = known.clone().into_iter().filter(|known| distance(known) <= (known.len() / 3).max(1));
    match near.min_by_key(|known| distance(known)) {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => {
            let all: Vec<_> = known.into_iter().map(|known| format!("`{known}`")).collect();
            format!("there is {}", all.join(", "))
        }
    }
}
