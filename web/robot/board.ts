/** Draws a two-dimensional picture on a canvas, as src/view/draw/board.ts does without one. */
import {
  type Colour,
  type Drawing,
  type DrawnShape,
  lineWidthOf,
  placeIn,
  rgbaOf,
  squaresOf,
} from '../../src/view/drawing.ts';

const css = (colour: Colour): string => {
  const [red, green, blue, opacity] = rgbaOf(colour);
  return `rgb(${255 * red} ${255 * green} ${255 * blue} / ${opacity})`;
};

/** Draws over all of the canvas, whose size is in its own pixels. */
export function drawBoard(canvas: HTMLCanvasElement, drawing: Drawing, dark: boolean): void {
  const context = canvas.getContext('2d');
  if (context === null) return;
  const { scale, left, top } = placeIn(drawing, canvas.width, canvas.height);
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.clearRect(0, 0, canvas.width, canvas.height);
  context.setTransform(scale, 0, 0, scale, left, top);
  // What lies outside of the drawing is not part of it.
  context.save();
  context.beginPath();
  context.rect(0, 0, drawing.width, drawing.height);
  context.clip();
  context.lineJoin = 'round';
  context.lineCap = 'round';
  if (drawing.background) {
    context.fillStyle = css(drawing.background);
    context.fillRect(0, 0, drawing.width, drawing.height);
  }
  const finish = (shape: { fill?: Colour; stroke?: Colour; lineWidth?: number }): void => {
    if (shape.fill) {
      context.fillStyle = css(shape.fill);
      context.fill();
    }
    if (shape.stroke) {
      context.strokeStyle = css(shape.stroke);
      context.lineWidth = lineWidthOf(drawing, shape.lineWidth);
      context.stroke();
    }
  };
  const draw = (shape: DrawnShape): void => {
    context.beginPath();
    switch (shape.kind) {
      case 'rectangle':
        context.rect(shape.x, shape.y, shape.width, shape.height);
        finish(shape);
        break;
      case 'circle':
        context.arc(shape.x, shape.y, shape.radius, 0, 2 * Math.PI);
        finish(shape);
        break;
      case 'line':
        for (let i = 0; i < shape.points.length; i += 2) context.lineTo(shape.points[i], shape.points[i + 1]);
        finish(shape);
        break;
      case 'text':
        context.save();
        context.fillStyle = css(shape.fill ?? (dark ? 'white' : 'black'));
        // A font has a least size in pixels, not in units of the drawing.
        context.translate(shape.x, shape.y);
        context.scale(shape.size / 32, shape.size / 32);
        context.font = '32px ui-monospace, monospace';
        context.textBaseline = 'middle';
        context.textAlign = ({ start: 'left', middle: 'center', end: 'right' } as const)[
          shape.align ?? 'start'
        ];
        context.fillText(shape.text, 0, 0);
        context.restore();
        break;
      case 'cells':
        for (const square of squaresOf(shape)) draw(square);
        break;
      default:
        shape satisfies never;
    }
  };
  for (const shape of drawing.shapes) draw(shape);
  context.restore();
}
