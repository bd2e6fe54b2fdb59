import { testTask } from '../support/contract.ts';

testTask('chess', {});
testTask('chess', { environmentShare: 0, candidates: 3, searchDepth: 1 });
testTask('chess', { board: 'fen', padded: true, environmentShare: 0.5 });
testTask('chess', { environmentShare: 1 });
