import 'uplot/dist/uPlot.min.css';
import './app.css';
import { mount } from 'svelte';
import App from './app.svelte';

mount(App, { target: document.getElementById('app')! });
