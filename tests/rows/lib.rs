//! Checks the rows of a test: a row that fails hides none of those after it.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Poll;

/// Checks each row. One that fails prints its message at once.
///
/// # Panics
/// After the last row, with the numbers of those that failed, and if there is no row.
#[track_caller]
pub fn each_row<Row>(rows: impl IntoIterator<Item = Row>, mut check: impl FnMut(Row)) {
    let outcomes = rows
        .into_iter()
        .map(|row| catch_unwind(AssertUnwindSafe(|| check(row))).is_ok())
        .collect::<Vec<_>>();
    every_one_held(&outcomes);
}

/// [`each_row`] with a check that waits.
///
/// # Panics
/// As [`each_row`].
pub async fn each_row_async<Row>(
    rows: impl IntoIterator<Item = Row>,
    mut check: impl AsyncFnMut(Row),
) {
    let mut outcomes = Vec::new();
    for row in rows {
        // On the heap: the caller is polled with room for the largest check.
        let mut check = Box::pin(check(row));
        let has_held =
            poll_fn(
                |cx| match catch_unwind(AssertUnwindSafe(|| check.as_mut().poll(cx))) {
                    Ok(progress) => progress.map(|()| true),
                    Err(_) => Poll::Ready(false),
                },
            );
        outcomes.push(has_held.await);
    }
    every_one_held(&outcomes);
}

#[track_caller]
fn every_one_held(outcomes: &[bool]) {
    assert!(!outcomes.is_empty(), "there is no row to check");
    let failed: Vec<usize> = (1..)
        .zip(outcomes)
        .filter_map(|(number, has_held)| (!has_held).then_some(number))
        .collect();
    let count = outcomes.len();
    assert!(
        failed.is_empty(),
        "of {count} rows these failed: {failed:?}"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::ready;
    use std::pin::pin;
    use std::task::{Context, Waker};

    /// What a test of rows says at its end, and the rows that it has checked.
    fn verdict(rows: &[u32]) -> (Option<String>, Vec<u32>) {
        let mut checked = Vec::new();
        let result = catch_unwind(AssertUnwindSafe(|| {
            each_row(rows, |row| {
                checked.push(*row);
                assert!(row % 2 == 0, "{row} is odd");
            });
        }));
        let text = result
            .err()
            .map(|cause| *cause.downcast::<String>().unwrap());
        (text, checked)
    }

    #[test]
    fn rows_after_a_failed_one_are_checked_and_all_failed_ones_named() {
        let (text, checked) = verdict(&[2, 3, 4, 5, 6]);
        assert_eq!(checked, [2, 3, 4, 5, 6]);
        assert_eq!(text.unwrap(), "of 5 rows these failed: [2, 4]");
        assert_eq!(verdict(&[2, 4]).0, None);
    }

    #[test]
    fn rows_of_a_check_that_waits_are_checked_in_the_same_way() {
        let mut checked = Vec::new();
        let all = each_row_async([1, 2, 3], async |row| {
            checked.push(row);
            ready(()).await;
            assert_ne!(row, 2);
        });
        let result = catch_unwind(AssertUnwindSafe(|| {
            let mut cx = Context::from_waker(Waker::noop());
            pin!(all).poll(&mut cx)
        }));
        let text = result.unwrap_err().downcast::<String>().unwrap();
        assert_eq!(*text, "of 3 rows these failed: [2]");
        assert_eq!(checked, [1, 2, 3]);
    }

    #[test]
    fn a_test_without_rows_fails() {
        let result = catch_unwind(|| each_row([(); 0], |()| ()));
        let text = result.unwrap_err().downcast::<&str>().unwrap();
        assert_eq!(*text, "there is no row to check");
    }
}
