//! What the skills of an agent share: clients, configuration, secrets.

use super::RUNS_TURNS;
use super::{AgentError, AgentResult, TaskContext};
use futures::future::BoxFuture;
use std::any::{Any, TypeId, type_name};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::future::{Future, ready};
use std::ops::Deref;
use std::sync::Arc;
use tokio::sync::OnceCell;

type AnyState = Arc<dyn Any + Send + Sync>;
type StateResult = Result<AnyState, Box<dyn Error + Send + Sync>>;
type MakeState = dyn Fn() -> BoxFuture<'static, StateResult> + Send + Sync;
type AddDouble = dyn Fn(&mut States) + Send + Sync;

/// A value that the skills of an agent share.
///
/// An `async fn` skill takes it as an argument between `cx` and the input. The agent has a
/// factory for it ([`AgentBuilder::state`](super::AgentBuilder::state)). A process calls the
/// factory once, and only if it runs skills.
///
/// ```
/// use a2a_lambda::prelude::*;
/// use a2a_lambda::settings::Setting;
///
/// struct Prices {
///     currency: String,
/// }
///
/// /// Says what an article costs.
/// #[skill(id = "price", tags = ["shop"])]
/// async fn price(prices: State<Prices>, article: String) -> AgentResult<String> {
///     Ok(format!("{article}: 3 {}", prices.currency))
/// }
///
/// let agent = Agent::builder("shop")
///     .state(async || Setting::read("CURRENCY").map(|currency| Prices { currency }))
///     .double(|| Prices { currency: "EUR".to_owned() })
///     .skill(price)
///     .build()?;
/// # Ok::<(), BuildError>(())
/// ```
pub struct State<T>(Arc<T>);

impl<T: Send + Sync + 'static> State<T> {
    /// The state of this type, for a skill that is a struct.
    ///
    /// # Errors
    /// When the agent has no factory for it, or the factory fails.
    pub async fn of(cx: &TaskContext<'_>) -> AgentResult<Self> {
        cx.facts.states.get().await
    }

    /// The state of this type, if the agent has it as a value
    /// ([`AgentBuilder::state_value`](super::AgentBuilder::state_value)), or it is made already.
    #[must_use]
    pub fn made(cx: &TaskContext<'_>) -> Option<Self> {
        let factory = cx.facts.states.factories.get(&TypeId::of::<T>())?;
        let value = Arc::clone(factory.value.get()?);
        value.downcast().ok().map(Self)
    }

    /// What a skill needs that takes this state.
    #[doc(hidden)]
    #[must_use]
    pub fn need() -> NeededState {
        NeededState {
            id: TypeId::of::<T>(),
            name: type_name::<T>(),
        }
    }
}

impl<T> Deref for State<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> Clone for State<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// The value may be a secret.
impl<T> fmt::Debug for State<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "State<{}>", type_name::<T>())
    }
}

/// A state that a skill needs.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NeededState {
    id: TypeId,
    pub(super) name: &'static str,
}

/// Why a state cannot be made. Its text names the type, and the error of its factory.
#[derive(Debug, thiserror::Error)]
#[error("failed to make the state `{name}`: {source}")]
pub struct StateError {
    name: &'static str,
    source: Box<dyn Error + Send + Sync>,
}

/// The states of an agent. Clones share what is made.
#[derive(Clone, Default)]
pub struct States {
    pub(super) factories: BTreeMap<TypeId, Arc<Factory>>,
    doubles: BTreeMap<TypeId, Arc<AddDouble>>,
}

pub(super) struct Factory {
    name: &'static str,
    make: Box<MakeState>,
    value: OnceCell<AnyState>,
}

impl States {
    /// Adds a factory. It replaces an earlier one of the same type.
    pub(super) fn add<T, F, W, E>(&mut self, make: F)
    where
        T: Send + Sync + 'static,
        F: Fn() -> W + Send + Sync + 'static,
        W: Future<Output = Result<T, E>> + Send + 'static,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        let make = move || -> BoxFuture<'static, StateResult> {
            if !RUNS_TURNS {
                return Box::pin(async { Err("this build runs no skills".into()) });
            }
            let making = make();
            Box::pin(async move { Ok(Arc::new(making.await.map_err(Into::into)?) as AnyState) })
        };
        self.insert::<T>(Box::new(make), OnceCell::new());
    }

    /// Adds a value. It replaces an earlier one of the same type.
    pub(super) fn add_value<T: Send + Sync + 'static>(&mut self, value: T) {
        let value: AnyState = Arc::new(value);
        let make = || -> BoxFuture<'static, StateResult> {
            Box::pin(async { Err("the value is made already".into()) })
        };
        self.insert::<T>(Box::new(make), OnceCell::new_with(Some(value)));
    }

    /// Adds what makes the double of a state.
    pub(super) fn add_double<T, F>(&mut self, make: F)
    where
        T: Send + Sync + 'static,
        F: Fn() -> T + Send + Sync + 'static,
    {
        let make = Arc::new(make);
        let add = move |states: &mut Self| {
            let make = Arc::clone(&make);
            states.add(move || ready(Ok::<_, Infallible>(make())));
        };
        self.doubles.insert(TypeId::of::<T>(), Arc::new(add));
    }

    /// Takes the doubles in place of their states. Each call makes its own.
    pub(super) fn use_doubles(&mut self) {
        for add in self.doubles.clone().into_values() {
            add(self);
        }
    }

    /// Sets the value of a state, and forgets its double, which would replace it later.
    pub(super) fn set_value<T: Send + Sync + 'static>(&mut self, value: T) {
        self.doubles.remove(&TypeId::of::<T>());
        self.add_value(value);
    }

    /// Adds the states of types that these have not.
    pub(super) fn add_missing(&mut self, others: Self) {
        for (id, factory) in others.factories {
            self.factories.entry(id).or_insert(factory);
        }
    }

    fn insert<T: 'static>(&mut self, make: Box<MakeState>, value: OnceCell<AnyState>) {
        let name = type_name::<T>();
        let factory = Factory { name, make, value };
        self.factories.insert(TypeId::of::<T>(), Arc::new(factory));
    }

    /// Whether there is a factory for what a skill needs.
    pub(super) fn have(&self, state: &NeededState) -> bool {
        self.factories.contains_key(&state.id)
    }

    async fn get<T: Send + Sync + 'static>(&self) -> AgentResult<State<T>> {
        let name = type_name::<T>();
        let none = || {
            AgentError::internal(format!(
                "the agent has no state `{name}`: add it with `Agent::builder(…).state(…)`"
            ))
        };
        let factory = self.factories.get(&TypeId::of::<T>());
        let factory = factory.ok_or_else(none)?;
        let value = factory.get().await.map_err(AgentError::internal)?;
        value.downcast().map(State).map_err(|_| none())
    }
}

impl Factory {
    pub(super) async fn get(&self) -> Result<AnyState, StateError> {
        let result = self.value.get_or_try_init(&self.make).await;
        result.cloned().map_err(|source| StateError {
            name: self.name,
            source,
        })
    }
}

impl fmt::Debug for States {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.factories.values().map(|factory| factory.name);
        f.debug_list().entries(names).finish()
    }
}
