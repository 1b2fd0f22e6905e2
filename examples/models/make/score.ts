export interface Scores {
  count: number;
  accuracy: number;
  precision: number;
  recall: number;
}

/** How good the answers are; precision and recall are those of the positive class. */
export function score(answers: readonly { said: boolean; truth: boolean }[]): Scores {
  const count = (said: boolean, truth: boolean): number =>
    answers.filter((answer) => answer.said === said && answer.truth === truth).length;
  const found = count(true, true);
  return {
    count: answers.length,
    accuracy: (found + count(false, false)) / answers.length,
    precision: found / (found + count(true, false)),
    recall: found / (found + count(false, true)),
  };
}
