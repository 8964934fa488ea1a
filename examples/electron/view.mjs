// What the page shows, out of what is so.

/**
 * @param {import("@sallyport/companion").State} state
 * @param {string[]} waiting what the open questions are about
 */
export function view(state, waiting) {
  return {
    state: state.name,
    text: sentence(state),
    waiting,
    canReview: (state.name === "ready" || state.name === "attached") && waiting.length > 0,
    canTryAgain: state.name === "failed",
  };
}

/** @param {import("@sallyport/companion").State} state */
function sentence(state) {
  switch (state.name) {
    case "starting":
      return "Sallyport is starting.";
    case "ready":
      return `Sallyport ${state.version} is running.`;
    case "attached":
      return `Sallyport ${state.version} was running already.`;
    case "restarting":
      return `Sallyport ended (${state.reason.message}) and is started again.`;
    case "failed":
      return `Sallyport does not run: ${state.reason.message}.${state.reason.next === undefined ? "" : ` What to do: ${state.reason.next}.`}`;
    case "stopped":
      return "Sallyport is stopped.";
  }
}
