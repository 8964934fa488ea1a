// The page. What plugins are called is text, and never markup.
(() => {
  const { sallyport } = /** @type {any} */ (window);
  /** @param {string} id */
  const at = (id) => /** @type {HTMLElement} */ (document.getElementById(id));
  const review = /** @type {HTMLButtonElement} */ (at("review"));
  const again = /** @type {HTMLButtonElement} */ (at("again"));

  /** @param {{ text: string, waiting: string[], canReview: boolean, canTryAgain: boolean }} view */
  function show(view) {
    at("text").textContent = view.text;
    const n = view.waiting.length;
    at("count").textContent = n === 0 ? "No questions" : n === 1 ? "1 question" : `${n} questions`;
    at("waiting").replaceChildren(
      ...view.waiting.map((subject) => {
        const item = document.createElement("li");
        item.textContent = subject;
        return item;
      }),
    );
    review.disabled = !view.canReview;
    again.hidden = !view.canTryAgain;
  }

  /** @param {Promise<{ ok: boolean, message?: string }>} asked */
  async function tell(asked) {
    const answer = await asked;
    at("failed").textContent = answer.ok ? "" : `It did not work: ${answer.message}`;
  }

  review.addEventListener("click", () => void tell(sallyport.review()));
  again.addEventListener("click", () => void tell(sallyport.again()));
  sallyport.onView(show);
  void sallyport.view().then((/** @type {any} */ answer) => answer.ok && show(answer.value));
})();
